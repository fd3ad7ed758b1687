import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Store
import Telemetry
import Tiers
import Wire

extension NodeCore: PeerService {
    var sharingRule: SharingRule {
        let settings = settings
        var (named, others) = ([UInt16: Bool](), false)
        for policy in settings.sitePolicies {
            guard !policy.isForEveryHost else {
                others = policy.settings.usesPeers
                continue
            }
            let share = DiskShareID.number(ofHost: Array(policy.name.utf8).span)
            named[share] = policy.settings.usesPeers
        }
        return SharingRule(images: settings.images.areShared, named: named, others: others) {
            settings.sharesWithPeers($0)
        }
    }

    func makeQueryHandler(
        _ query: PeerQuery, on stream: UInt32, of connection: PeerConnection
    ) -> (any PeerQueryHandler)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        return PeerRequestHandler(query, on: stream, of: connection, in: context)
    }

    func complete(_ summary: inout MemberSummary) {
        // A node that has failed to start or has stopped has no log of purges.
        if purgesIfOpen != nil { summary.add(self) }
    }

    func touchesReceived(_ touches: [AgedTouch]) {
        let second = clock.second(SystemClock.now())
        counters.add(.touchesReceived, touches.count)
        touch(touches.map { $0.touch(now: second) })
    }

    func startTransfer(
        of offer: PeerOffer, from peer: NodeID, on connection: PeerConnection,
        completion: @escaping @Sendable (InboundOffers.TransferOutcome) -> Void
    ) -> (any Sendable & AnyObject)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        let transfer = HandoffTransfer(
            offer, from: peer, on: connection, in: context, done: completion)
        context.loop.execute { transfer.start() }
        return transfer
    }
}

extension MemoryEntry {
    /// True for an image, whose key is its URL; keys of sites begin with a slash.
    var isImage: Bool { keyAndHead.first != UInt8(ascii: "/") }
}
