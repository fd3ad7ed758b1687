import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// How the body of an answer that had to wait goes out.
extension Door {
    // MARK: The body, as it is received

    /// False if there is nothing to do before the door is woken.
    func proceed(_ waiting: Waiting, _ transfer: Waiting.Transfer) -> Bool {
        guard let run = waiting.run, let reader = waiting.reader else {
            preconditionFailure("a transfer from nothing")
        }
        var transfer = transfer
        if transfer.lentBytes > 0 {
            run.advance(reader, by: transfer.lentBytes)
            transfer.position += UInt64(transfer.lentBytes)
            transfer.lentBytes = 0
            waiting.stage = .transfer(transfer)
        }
        if let end = transfer.end, transfer.position >= end {
            endTransfer(waiting, transfer)
            return false
        }
        slices.removeAll(keepingCapacity: true)
        switch run.step(reader, limit: settings.transferBytesMax, on: hall, slices: &slices) {
        case .wait:
            hall.await(run, for: self)
            return false
        case .take(_, let count):
            if upload?.isSwitched == true { awaitUpload(now: SystemClock.now()) }
            transfer.lentBytes = count
            waiting.stage = .transfer(transfer)
            sendSlices(transfer, count)
            // Bytes outside of the wanted part were skipped: nothing will come from the socket.
            return queuedBytes == 0
        case .finish:
            endTransfer(waiting, transfer)
            return false
        case .startOver, .breakOff, .fail:
            breakOff()
            return false
        }
    }

    /// Writes those of the bytes in `slices` that the client wants.
    private func sendSlices(_ transfer: Waiting.Transfer, _ count: Int) {
        let first = max(transfer.from, transfer.position)
        let last = min(transfer.end ?? .max, transfer.position + UInt64(count))
        guard first < last else { return slices.removeAll(keepingCapacity: true) }
        answeredBytes += last - first
        if transfer.isChunked { outlet?.beginChunk(bytes: last - first) }
        var offset = transfer.position
        for slice in slices {
            let next = offset + UInt64(slice.readableBytes)
            let from = max(first, offset)
            let to = min(last, next)
            if from < to,
                let part = slice.getSlice(
                    at: slice.readerIndex + Int(from - offset), length: Int(to - from))
            {
                outlet?.send(body: part)
            }
            offset = next
        }
        slices.removeAll(keepingCapacity: true)
        if transfer.isChunked { outlet?.endChunk() }
    }

    private func endTransfer(_ waiting: Waiting, _ transfer: Waiting.Transfer) {
        if let end = transfer.end, transfer.position < end {
            // The origin's length and the body's disagree; the client must not take it for whole.
            return breakOff()
        }
        if transfer.isChunked {
            outlet?.endChunks(
                trailers: waiting.isFirst ? waiting.run?.view.known.trailers ?? [] : [])
        }
        endWaiting(waiting)
    }

    // MARK: The body, from an entry

    /// Gives `segments`, the bodies among them from `resident`, as fast as the client takes them.
    func stream(_ resident: Resident, _ segments: [Segment]) {
        isAnswering = true
        let waiting = self.waiting ?? Waiting()
        waiting.stage = .segments(resident, segments)
        self.waiting = waiting
    }

    /// Writes until the output is congested; false when the answer is complete.
    func proceed(_ waiting: Waiting, _ resident: Resident, _ left: [Segment]) -> Bool {
        guard let first = left.first else {
            endWaiting(waiting)
            return false
        }
        outlet?.lend(resident)
        switch first {
        case .text(let text):
            outlet?.send(body: text)
            waiting.stage = .segments(resident, Array(left.dropFirst()))
        case .body(let offset, let count):
            let taken = min(count, UInt64(settings.transferBytesMax))
            slices.removeAll(keepingCapacity: true)
            resident.body.appendSlices(from: offset, count: Int(taken), to: &slices)
            for slice in slices { outlet?.send(body: slice) }
            slices.removeAll(keepingCapacity: true)
            answeredBytes += taken
            let rest: [Segment] =
                taken < count ? [.body(from: offset + taken, count: count - taken)] : []
            waiting.stage = .segments(resident, rest + left.dropFirst())
        }
        return true
    }
}
