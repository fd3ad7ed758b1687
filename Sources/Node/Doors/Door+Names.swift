import Ground
import HTTPRules
import NIOCore
import Store
import Wire

/// What the request that is being answered is called.
extension Door {
    /// The parser holds a request that nobody has named here.
    @inline(__always)
    func nameRequest(_ bytes: Span<UInt8>) {
        nameUnread()
        if parser.fields.contains(.xRequestID) { takeOverID(bytes) }
    }

    /// The same for what could not be read: nothing that it says is taken over.
    @inline(__always)
    func nameUnread() {
        requestNumber = hall.requestNames.next()
        if !givenID.isEmpty { givenID.removeAll(keepingCapacity: true) }
    }

    /// Calls the request what its client calls it, if that is one name, and safe to repeat.
    @inline(never)
    private func takeOverID(_ bytes: Span<UInt8>) {
        var given: Range<Int>?
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            guard line.id == .xRequestID else { continue }
            guard given == nil else { return }
            given = line.value.range
        }
        guard let given, RequestID.isSafe(bytes, at: given) else { return }
        for index in given { givenID.append(bytes[index]) }
    }

    var requestID: RequestID { RequestID(givenID) ?? hall.requestNames.id(requestNumber) }

    /// What is asked for the sake of the request with this head.
    func cause(_ request: PendingRequest) -> RequestCause {
        RequestCause(requestID, TraceContext(request.lines, in: request.head.span))
    }

    /// The lines that differ from one answer of an entry to the next, and the end of the head.
    @inline(__always)
    func appendTail(
        _ facts: EntryFacts, _ note: CacheNote, to writer: inout HeadWriter, now: Instant
    ) {
        if givenID.isEmpty {
            writer.append(hall.requestNames.runDigits, HexDigits(requestNumber))
        } else {
            writer.append("X-Request-Id: ")
            writer.append(givenID)
            writer.append("\r\n")
        }
        writer.appendTail(facts, note: note, date: hall.dateLine, connectionNote, now: now)
    }
}

extension HeadWriter {
    /// `X-Request-Id` of a request that has its name from here.
    @inline(__always)
    mutating func append(_ run: HexDigits, _ number: HexDigits) {
        append("X-Request-Id: ")
        append(digits: run.high)
        append(digits: run.low)
        append(digits: number.high)
        append(digits: number.low)
        append("\r\n")
    }
}
