import Platform
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// Transmission of the body of a response that was not sent at once.
extension RequestHandler {
    // MARK: Body in progress

    /// Sends the bytes that the fetch has received.
    ///
    /// - Returns: false if nothing remains to do until the handler is woken.
    func proceed(_ waiting: PendingResponse, _ transfer: PendingResponse.Transfer) -> Bool {
        guard let run = waiting.fetch, let reader = waiting.reader else {
            preconditionFailure("a transfer from nothing")
        }
        var transfer = transfer
        if transfer.inFlightBytes > 0 {
            run.advance(reader, by: transfer.inFlightBytes)
            transfer.position += UInt64(transfer.inFlightBytes)
            transfer.inFlightBytes = 0
            waiting.stage = .streaming(transfer)
        }
        if let end = transfer.end, transfer.position >= end {
            endTransfer(waiting, transfer)
            return false
        }
        slices.removeAll(keepingCapacity: true)
        switch run.nextStep(reader, limit: settings.transferBytesMax, on: context, slices: &slices)
        {
        case .wait:
            context.addReader(run, for: self)
            return false
        case .read(_, let count):
            if upload?.isTunnel == true { updateUploadDeadline(now: SystemClock.now()) }
            transfer.inFlightBytes = count
            waiting.stage = .streaming(transfer)
            sendSlices(transfer, count)
            // If all bytes were outside the requested part, nothing is queued and no event of the
            // socket follows.
            return queuedBytes == 0
        case .finish:
            endTransfer(waiting, transfer)
            return false
        case .restart, .abort, .fail:
            abort()
            return false
        }
    }

    /// Writes the requested bytes of those in `slices`.
    private func sendSlices(_ transfer: PendingResponse.Transfer, _ count: Int) {
        let first = max(transfer.from, transfer.position)
        let last = min(transfer.end ?? .max, transfer.position + UInt64(count))
        guard first < last else { return slices.removeAll(keepingCapacity: true) }
        responseBodyBytes += last - first
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

    /// Ends a body, or aborts if it is shorter than announced.
    private func endTransfer(_ waiting: PendingResponse, _ transfer: PendingResponse.Transfer) {
        if let end = transfer.end, transfer.position < end {
            // The body is shorter than its announced length; the client must not take it for
            // complete.
            return abort()
        }
        if transfer.isChunked {
            writer?.endChunks(
                trailers: waiting.isInitiator ? waiting.fetch?.snapshot.progress.trailers ?? [] : []
            )
        }
        finishPendingResponse(waiting)
    }

    // MARK: Body of an entry

    /// Begins to send `segments`, with body ranges from `entry`, as fast as the client reads them.
    func stream(_ entry: MemoryEntry, _ segments: [ResponseBodyPart]) {
        isResponding = true
        let waiting = self.pendingResponse ?? PendingResponse()
        waiting.stage = .sendingEntry(entry, segments)
        self.pendingResponse = waiting
    }

    /// Writes one segment or a part of it; returns false if the response is complete.
    func proceed(_ waiting: PendingResponse, _ entry: MemoryEntry, _ left: [ResponseBodyPart])
        -> Bool
    {
        guard let first = left.first else {
            finishPendingResponse(waiting)
            return false
        }
        writer?.retain(entry)
        switch first {
        case .text(let text):
            writer?.send(body: text)
            waiting.stage = .sendingEntry(entry, Array(left.dropFirst()))
        case .body(let offset, let count):
            let taken = min(count, UInt64(settings.transferBytesMax))
            slices.removeAll(keepingCapacity: true)
            entry.body.appendSlices(from: offset, count: Int(taken), to: &slices)
            for slice in slices { writer?.send(body: slice) }
            slices.removeAll(keepingCapacity: true)
            responseBodyBytes += taken
            let rest: [ResponseBodyPart] =
                taken < count ? [.body(from: offset + taken, count: count - taken)] : []
            waiting.stage = .sendingEntry(entry, rest + left.dropFirst())
        }
        return true
    }
}
