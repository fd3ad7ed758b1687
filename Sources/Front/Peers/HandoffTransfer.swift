import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Peering
import Platform
import Store
import Tiers
import Wire

/// The transfer of one offered entry from the offering peer.
///
/// The entry goes to the disk. As no client has requested it here, it goes into memory only on a
/// node without a disk, or in place of an older one. An entry that is as new is never replaced.
/// Confined to the loop of its context.
final class HandoffTransfer: PeerRequestDelegate, @unchecked Sendable {
    private let offer: PeerOffer
    private let peer: NodeID
    private let connection: PeerConnection
    private let context: EventLoopContext
    /// The completion handler; `nil` once it was called.
    private var completion: (@Sendable (InboundOffers.TransferOutcome) -> Void)?
    /// The query for the entry; `nil` before it is sent.
    private var request: PeerRequest?
    /// The pin of the invalidation version at the time of the query.
    private var versionPin: VersionPin?
    /// The Date of the entry that the disk held before the query.
    private var storedDate: WallTime?
    /// True if the disk held an index of variants under the name of the entry.
    private var isStoredIndex = false
    /// The entry that is arriving; `nil` before its head.
    private var incoming: IncomingEntry?
    /// When the last event of the query arrived, or the transfer was created.
    private var lastEvent = SystemClock.now()
    private var timeoutTask: Scheduled<Void>?

    /// Maximum time without an event from the offering peer.
    private static let idleTimeout = Interval.seconds(10)

    /// An entry whose head has arrived.
    private struct IncomingEntry {
        let entry: PeerEntry
        /// The metadata of the entry on this node's clock.
        let facts: EntryMetadata
        /// The name under which it is stored here.
        let name: EntryName
        /// The key under which it is stored here.
        let location: OfferedLocation
        let head: RenderedHead
        let reservation: FetchReservation
        /// Bytes of memory reserved for head and body.
        let reservedBytes: Int
        var body = BodyBuffer(isRetained: true)
    }

    /// Creates a transfer; `done` is called once with its outcome.
    init(
        _ offer: PeerOffer, from peer: NodeID, on connection: PeerConnection,
        in context: EventLoopContext,
        done: @escaping @Sendable (InboundOffers.TransferOutcome) -> Void
    ) {
        self.offer = offer
        self.peer = peer
        self.connection = connection
        self.context = context
        self.completion = done
    }

    /// Starts the transfer; if the entry was just fetched, its stored predecessor is inspected
    /// first.
    func start() {
        guard offer.isJustFetched, let disk = context.node.disk, let view = disk.view,
            view.contains(offer.digest)
        else { return sendRequest() }
        let (digest, clock) = (offer.digest, disk.clock)
        let facts = disk.readerThreads.runIfActive(eventLoop: context.loop) {
            view.read(digest: digest)?.metadata(clock)
        }
        facts.assumeIsolated().whenComplete { [self] result in
            if case .success(let facts?) = result {
                (storedDate, isStoredIndex) = (facts.date, facts.flags.contains(.isVariantIndex))
            }
            sendRequest()
        }
    }

    /// Pins the invalidation version and sends the query for the entry.
    private func sendRequest() {
        versionPin = context.node.marks.pin()
        let ask = PeerRequest(
            peer,
            PeerQuery(
                .probe, name: EntryName(prefix: offer.digest), key: []),
            on: connection, for: self, on: context.loop,
            counters: context.counters)
        self.request = ask
        connection.send(ask)
        scheduleTimeout()
    }

    /// Schedules the check for a stalled transfer, which would delay those from other peers.
    private func scheduleTimeout() {
        let wait = max(.milliseconds(1), lastEvent + Self.idleTimeout - SystemClock.now())
        timeoutTask = context.loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds))
        {
            [self] in
            guard completion != nil else { return }
            guard SystemClock.now() - lastEvent < Self.idleTimeout else { return complete(.failed) }
            scheduleTimeout()
        }
    }

    /// Handles an event of the query.
    func eventReceived(_ event: PeerRequest.Event, for ask: PeerRequest) {
        guard completion != nil else { return }
        lastEvent = SystemClock.now()
        switch event {
        case .entryReceived(let response):
            beginEntry(response.entry, of: ask)
            for bytes in response.body { eventReceived(.dataReceived(bytes), for: ask) }
            if let end = response.end { eventReceived(.bodyEnded(end), for: ask) }
        case .replyReceived(.fetching), .replyReceived(.interim): break
        case .replyReceived(.absent): complete(.goneAtSender)
        case .replyReceived(.declined(.tooLarge)), .replyReceived(.declined(.notUnderstood)):
            complete(.rejected)
        case .replyReceived: complete(.failed)
        case .failed, .notSent: complete(.failed)
        case .dataReceived(let bytes):
            incoming?.body.append(bytes)
            connection.bytesConsumed(bytes.readableBytes, of: ask)
        case .bodyEnded(let end): bodyEnded(end.size)
        }
    }

    /// Checks the entry's head and reserves memory for its body; completes the transfer if the
    /// entry is not wanted.
    private func beginEntry(_ entry: PeerEntry, of ask: PeerRequest) {
        let now = SystemClock.now()
        let facts = entry.facts.entryFacts(at: now, requestedAt: ask.createdAt)
        guard let plan = context.settings.sharedPolicy(ofKey: entry.key),
            plan.digest == entry.policyDigest
        else {
            if let site = context.settings.sharedPolicy(ofKey: entry.key)?.name {
                connection.hub.siteSettingsDiffer(from: peer, on: site)
            }
            return complete(.rejected)
        }
        guard let size = entry.facts.size, size <= plan.objectBytesMax,
            isValidKey(entry.key, of: plan)
        else { return complete(.rejected) }
        // A stale page may be invalid at its owner by now.
        guard plan.imageRules != nil || facts.freshUntil > now else { return complete(.rejected) }
        let head: RenderedHead
        do throws(StoredHeadFault) {
            head = try RenderedHead(entry)
        } catch {
            connection.hub.replyRejected(peer, error)
            return complete(.rejected)
        }
        let name = EntryName(ofKey: entry.key)
        guard name.digest == offer.digest else { return complete(.rejected) }
        // The disk may hold an index under this key that memory does not have.
        guard !isStoredIndex,
            let place = context.node.entries.location(
                ofKey: entry.key, share: context.share(of: plan))
        else { return complete(.failed) }
        guard !isStored(asNewAs: facts, place.entryKey, isMoved: place.entryKey.key != entry.key)
        else {
            return complete(.stored)
        }
        let reservation = FetchReservation(context.store)
        let bytes =
            BodyLayout.capacity(size)
            + MemoryEntry.overhead(
                keyBytes: place.entryKey.key.count, headBytes: head.bytes.count,
                tagBytes: MemoryEntry.bytes(of: entry.tags), bodyBytes: size)
        let ownName = place.variant == nil ? name : EntryName(ofKey: place.entryKey.key)
        reservation.admissionHash = context.node.entries.admissionHash(
            of: ownName, at: place.entryKey.hash)
        guard reservation.grow(by: bytes) else { return complete(.failed) }
        incoming = IncomingEntry(
            entry: entry, facts: facts, name: ownName, location: place,
            head: head, reservation: reservation, reservedBytes: bytes)
    }

    /// Returns true if `key` may be a key of a response under `plan`.
    private func isValidKey(_ key: [UInt8], of plan: SitePolicy) -> Bool {
        let base = VariantKey.Parts(key)?.base ?? key
        if plan.imageRules != nil {
            return CacheKey.isKey(base, bytesMax: context.settings.urlBytesMax)
        }
        return base.count <= context.settings.urlBytesMax
            && base.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// Returns true if the node already holds an entry that is as new; `isMoved` if the entry has
    /// another key here than at the peer.
    ///
    /// For a moved entry the disk does not know how new it is. It counts as stored unless the
    /// offered one was just fetched.
    private func isStored(asNewAs facts: EntryMetadata, _ place: EntryKey, isMoved: Bool) -> Bool {
        if let storedDate, !isMoved { return storedDate >= facts.date }
        if let disk = context.node.disk {
            return isMoved && !offer.isJustFetched
                && disk.view?.contains(EntryName(ofKey: place.key).digest) == true
        }
        return context.store.find(place).map { $0.metadata.date >= facts.date } ?? false
    }

    /// Stores the entry if its body is complete; otherwise the transfer has failed.
    private func bodyEnded(_ size: UInt64) {
        guard let versionPin, var incoming, size == incoming.facts.size,
            incoming.body.endOffset == size,
            let chunks = incoming.body.finish()
        else { return complete(.failed) }
        let (store, entry, place) = (context.store, incoming.entry, incoming.location)
        incoming.reservation.transfer(incoming.reservedBytes)
        let memoryEntry = MemoryEntry(
            key: place.entryKey.key, hash: place.entryKey.hash, name: incoming.name,
            metadata: incoming.facts, head: incoming.head.bytes, layout: incoming.head.layout,
            tags: entry.tags, version: versionPin.version,
            body: StoredBody(
                chunks: chunks, size: size, capacityBytes: BodyLayout.capacity(size),
                account: store.account),
            account: store.account, share: place.primaryKey.share)
        guard let done = completion.take() else { return }
        complete(.failed)
        let entries = context.node.entries
        entries.storeOffered(memoryEntry, offer) { isKept in
            if isKept { entries.storeVariantIndex(of: place, version: memoryEntry.version) }
            done(isKept ? .stored : .failed)
        }
    }

    /// Ends the transfer and calls the completion handler.
    private func complete(_ ending: InboundOffers.TransferOutcome) {
        request?.cancel()
        timeoutTask?.cancel()
        incoming = nil
        completion.take()?(ending)
    }
}
