import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import Telemetry

/// What a node says of its peers, once and not with every answer.
extension PeerHub {
    /// A member has other settings for a site than this node: each asks the origin for itself.
    func siteSettingsDiffer(from peer: NodeID, on site: String) {
        counters.add(.peerPoliciesDiffer)
        loop.execute { [self] in
            let why = "settings of \(site)"
            guard warningLimiter.shouldLog("\(peer) \(site)", why, now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "a peer has other settings for a site: each node asks the origin for itself",
                metadata: ["member": "\(peer)", "site": "\(site)"])
        }
    }

    /// A member gave an answer that cannot be one; nobody gets it.
    func replyRejected(_ peer: NodeID, _ fault: StoredHeadFault) {
        counters.add(.headsRefusedFromPeers)
        loop.execute { [self] in
            guard warningLimiter.shouldLog("\(peer)", "\(fault)", now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "an answer of a peer is refused",
                metadata: ["member": "\(peer)", "why": "\(fault)"])
        }
    }
}
