import Ground
import NIOCore
import Platform
import Serving

/// The body of a response that is sent while it is received.
extension PendingResponse: FetchReader {
    /// Continues after an event of the fetch.
    func fetchAdvanced(by run: ActiveFetch) {
        if fetch === run { proceed() }
    }

    /// Continues as far as the fetch and the client permit.
    func proceed() {
        while handler.pendingResponse === self, response.queuedBytes == 0 {
            let goesOn =
                switch stage {
                case .awaitingHead: sendHeadIfReady()
                case .streaming(let transfer): proceed(transfer)
                }
            guard goesOn else { break }
        }
        response.writer?.flush()
    }

    /// Sends the bytes that the fetch has received; returns false if nothing remains to do until
    /// the response is woken.
    private func proceed(_ transfer: BodyTransfer) -> Bool {
        guard let run = fetch, let reader else { preconditionFailure("a transfer from nothing") }
        var transfer = transfer
        let accepted = transfer.takeAccepted()
        if accepted > 0 {
            run.advance(reader, by: accepted)
            stage = .streaming(transfer)
        }
        if transfer.isComplete {
            endTransfer(transfer)
            return false
        }
        response.slices.removeAll(keepingCapacity: true)
        switch run.nextStep(
            reader, limit: settings.transferBytesMax, on: context, slices: &response.slices)
        {
        case .wait:
            context.fetches.addReader(self, of: run)
            return false
        case .read(_, let count):
            if let upload, upload.isTunnel { upload.updateDeadline(now: SystemClock.now()) }
            transfer.inFlightBytes = count
            stage = .streaming(transfer)
            response.sendSlices(of: transfer, count)
            // If all bytes were outside the requested part, nothing is queued and no event of the
            // socket follows.
            return response.queuedBytes == 0
        case .finish:
            endTransfer(transfer)
            return false
        case .restart, .abort, .fail:
            abort()
            return false
        }
    }

    /// Ends a body, or aborts if it is shorter than announced.
    private func endTransfer(_ transfer: BodyTransfer) {
        // The client must not take a body that is shorter than its announced length for complete.
        guard transfer.isComplete || transfer.end == nil else { return abort() }
        if transfer.isChunked {
            response.writer?.endChunks(
                trailers: forwarding.isInitiator ? fetch?.snapshot.progress.trailers ?? [] : [])
        }
        finish()
    }
}

/// Progress of a body that is sent while it is received.
struct BodyTransfer {
    /// Offset of the next byte to process in the body.
    private(set) var position: UInt64 = 0
    /// Start of the requested bytes, as an offset in the body.
    let from: UInt64
    /// End of the requested bytes; `nil` for the end of a body of unknown length.
    let end: UInt64?
    /// True if the body is sent in chunks.
    let isChunked: Bool
    /// Bytes written but not yet accepted by the client's side; the fetch still retains them.
    var inFlightBytes = 0

    /// Creates a transfer of the bytes from `from` to `end`; `nil` stands for the end of the
    /// body.
    init(from: UInt64, end: UInt64?, isChunked: Bool) {
        self.from = from
        self.end = end
        self.isChunked = isChunked
    }

    /// Creates the transfer of a complete body that is sent with `framing`.
    init(whole framing: ResponseFraming) {
        var end: UInt64?
        if case .length(let bytes) = framing { end = bytes }
        self.init(from: 0, end: end, isChunked: framing == .chunked)
    }

    /// True once all requested bytes were sent; never for a body of unknown length.
    var isComplete: Bool { end.map { position >= $0 } ?? false }

    /// Records that the client's side has accepted the bytes in flight; returns their number.
    mutating func takeAccepted() -> Int {
        defer { inFlightBytes = 0 }
        position += UInt64(inFlightBytes)
        return inFlightBytes
    }
}

extension ResponseSender {
    /// Writes the requested bytes of the `count` bytes in ``slices``, which begin at the position
    /// of `transfer`.
    fileprivate func sendSlices(of transfer: BodyTransfer, _ count: Int) {
        let first = max(transfer.from, transfer.position)
        let last = min(transfer.end ?? .max, transfer.position + UInt64(count))
        guard first < last else { return slices.removeAll(keepingCapacity: true) }
        bodyBytes += last - first
        if transfer.isChunked { writer?.beginChunk(bytes: last - first) }
        var offset = transfer.position
        for slice in slices {
            let next = offset + UInt64(slice.readableBytes)
            let from = max(first, offset)
            let to = min(last, next)
            if from < to,
                let part = slice.getSlice(
                    at: slice.readerIndex + Int(from - offset), length: Int(to - from))
            {
                writer?.send(body: part)
            }
            offset = next
        }
        slices.removeAll(keepingCapacity: true)
        if transfer.isChunked { writer?.endChunk() }
    }
}
