import Ground
import HTTPRules
import NIOCore
import Platform
import Serving
import Store
import Wire

/// The rest of a body that a peer has broken off, from another peer or the origin, if they have the
/// identical response.
///
/// So the failure of a node does not break responses to clients of others. A second fetch, which no
/// other request joins, brings the response from its beginning, and the bytes that the readers
/// already have are skipped. It stores the response itself, so the first fetch need not. Confined
/// to the event loop of its context.
final class ResumptionSource: ResponseSource, FetchReader {
    private let driver: LookupDriver
    private let fetch: ActiveFetch
    private unowned let context: EventLoopContext
    /// Name of the URL's primary entry on disk and on the ring.
    private let name: EntryName
    /// The response that the peer broke off.
    private let partialResponse: PartialResponse
    /// The second fetch and this source's reader of it.
    private var continuation: (run: ActiveFetch, reader: Fetch.ReaderID)?
    /// True once peers are skipped and the origin is contacted.
    private var skipsPeers = false
    /// Offset of the next byte in the body of the second fetch.
    private var position: UInt64 = 0
    /// Number of body bytes that the first fetch has received.
    private var receivedBytes: UInt64
    /// True once the second response was found identical to the first.
    private var isMatched = false
    /// True once the source has reported its result or was cancelled.
    private var isFinished = false

    /// The response as the readers know it.
    struct PartialResponse {
        let metadata: EntryMetadata
        let head: RenderedHead
        /// Body length; `nil` if unknown.
        let sizeBytes: UInt64?

        /// Properties that determine whether another response is identical.
        var identity: RepresentationIdentity {
            RepresentationIdentity(
                entityTag: head.slice(metadata.entityTag), lastModified: metadata.lastModified,
                isStrongDate: metadata.flags.contains(.strongDate), sizeBytes: sizeBytes)
        }
    }

    /// Timer that checks ``lastProgressAt``.
    private var stallTimer: Scheduled<Void>?
    /// When the second fetch last brought bytes, or the readers last held it up.
    private var lastProgressAt = SystemClock.now()

    /// Maximum time without progress from peers: two nodes with different rings could wait for each
    /// other.
    private static let stallTimeout = Interval.seconds(10)

    /// Creates a source that continues after `receivedBytes` bytes.
    init(
        _ driver: LookupDriver, name: EntryName, _ begun: PartialResponse, receivedBytes: UInt64
    ) {
        self.driver = driver
        fetch = driver.fetch
        context = driver.context
        self.name = name
        self.partialResponse = begun
        self.receivedBytes = receivedBytes
    }

    /// Begins the second fetch, with or without peers, at the start of the body.
    func begin(_ skipsPeers: Bool) {
        self.skipsPeers = skipsPeers
        position = 0
        isMatched = false
        var wish = Lookup.Options()
        wish.isExclusive = true
        wish.isResumption = true
        wish.skipsPeers = skipsPeers
        wish.isForPeer = fetch.snapshot.hasWaitingPeer
        let (second, reader) = context.node.fetches.startExclusive(fetch.siteRequest) {
            [context, fetch] in
            ActiveFetch(
                fetch.siteRequest, on: context, cause: fetch.correlation, client: fetch.client,
                wish: wish)
        }
        self.continuation = (second, reader)
        if !skipsPeers { scheduleStallCheck() }
        context.fetches.start(LookupDriver(second, name: name, on: context), readsDisk: false)
        proceed()
    }

    /// Schedules the check that gives up the second fetch once it has been without progress for
    /// ``stallTimeout``.
    private func scheduleStallCheck() {
        let wait = max(.milliseconds(1), lastProgressAt + Self.stallTimeout - SystemClock.now())
        stallTimer = context.loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds))
        {
            [weak self] in
            guard let self, !isFinished, !self.skipsPeers else { return }
            if fetch.isPaused { lastProgressAt = SystemClock.now() }
            guard SystemClock.now() - lastProgressAt < Self.stallTimeout else { return retry() }
            scheduleStallCheck()
        }
    }

    // MARK: Requests of the fetch

    func updateFlow() {
        proceed()
    }

    func cancel() {
        leave()
    }

    /// Passes on that a peer waits for the response.
    func peerJoined() {
        guard let continuation else { return }
        context.fetches.perform(on: continuation.run) { $0.peerJoined() }
    }

    // MARK: Events of the second fetch

    func fetchAdvanced(by run: ActiveFetch) {
        proceed()
    }

    /// Passes on what the second fetch has received, as far as the readers permit.
    private func proceed() {
        while !isFinished, !fetch.isPaused, let (second, reader) = continuation {
            var slices: [ByteBuffer] = []
            let limit = context.settings.transferBytesMax
            let step = second.nextStep(reader, limit: limit, on: context, slices: &slices)
            switch step {
            case .wait: return context.fetches.addReader(self, of: second)
            case .read(_, let count):
                guard isMatched || matchesPartialResponse(second) else { return abandon() }
                lastProgressAt = SystemClock.now()
                for slice in slices { forward(slice) }
                second.advance(reader, by: count)
            case .finish:
                guard isMatched || matchesPartialResponse(second), position == receivedBytes else {
                    return abandon()
                }
                return finish()
            case .restart, .abort, .fail: return retry()
            }
        }
    }

    /// Returns true if the second response is identical to the first; to be called when its head is
    /// known.
    private func matchesPartialResponse(_ second: ActiveFetch) -> Bool {
        let other: PartialResponse
        switch second.snapshot.progress.outcome {
        case .receiving(let fetch):
            other = PartialResponse(
                metadata: fetch.metadata, head: fetch.head, sizeBytes: fetch.sizeBytes)
        case .stored(let entry), .loadedFromDisk(let entry):
            other = PartialResponse(
                metadata: entry.metadata, head: RenderedHead(entry),
                sizeBytes: entry.metadata.size)
        case .pending, .failed: return false
        }
        isMatched = partialResponse.identity.matches(other.identity)
        return isMatched
    }

    /// Passes on the bytes that the readers do not have yet.
    private func forward(_ slice: ByteBuffer) {
        var slice = slice
        let known = min(UInt64(slice.readableBytes), receivedBytes - min(receivedBytes, position))
        position += UInt64(slice.readableBytes)
        slice.moveReaderIndex(forwardBy: Int(known))
        guard slice.readableBytes > 0 else { return }
        receivedBytes += UInt64(slice.readableBytes)
        fetch.bodyReceived(slice)
    }

    /// Leaves the second fetch, which has failed or stalled, and reports that another may continue.
    private func retry() {
        leaveContinuation()
        driver.lost(canBeResumed: true)
    }

    /// Reports the loss: the response has changed or vanished, so readers that have received
    /// nothing restart.
    private func abandon() {
        leave()
        driver.lost()
    }

    /// Completes the first fetch.
    private func finish() {
        _ = fetch.completed(name: nil) { _ in nil }
        leave()
        driver.finish()
    }

    /// Leaves the second fetch, so that another may begin.
    private func leaveContinuation() {
        stallTimer?.cancel()
        guard let (second, reader) = continuation.take() else { return }
        second.leave(reader)
    }

    /// Ends this source and leaves the second fetch.
    private func leave() {
        isFinished = true
        leaveContinuation()
    }
}
