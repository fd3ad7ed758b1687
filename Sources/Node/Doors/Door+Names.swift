import Ground
import HTTPRules
import NIOCore
import Store
import Wire

/// What the request that is being answered is called.
extension RequestHandler {
    /// The parser holds a request that nobody has named here.
    @inline(__always)
    func assignRequestID(_ bytes: Span<UInt8>) {
        assignGeneratedID()
        if parser.fields.contains(.xRequestID) { useClientRequestID(bytes) }
    }

    /// The same for what could not be read: nothing that it says is taken over.
    @inline(__always)
    func assignGeneratedID() {
        requestNumber = context.requestIDs.next()
        if !clientRequestID.isEmpty { clientRequestID.removeAll(keepingCapacity: true) }
    }

    /// Calls the request what its client calls it, if that is one name, and safe to repeat.
    @inline(never)
    private func useClientRequestID(_ bytes: Span<UInt8>) {
        var given: Range<Int>?
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            guard line.id == .xRequestID else { continue }
            guard given == nil else { return }
            given = line.value.range
        }
        guard let given, RequestID.isSafe(bytes, at: given) else { return }
        for index in given { clientRequestID.append(bytes[index]) }
    }

    var requestID: RequestID { RequestID(clientRequestID) ?? context.requestIDs.id(requestNumber) }

    /// What is asked for the sake of the request with this head.
    func cause(_ request: BufferedRequest) -> RequestCorrelation {
        RequestCorrelation(requestID, TraceContext(request.lines, in: request.head.span))
    }

    /// The lines that differ from one answer of an entry to the next, and the end of the head.
    @inline(__always)
    func appendTail(
        _ facts: EntryMetadata, _ note: CacheHandling, to writer: inout HeadWriter, now: Instant
    ) {
        if clientRequestID.isEmpty {
            writer.append(context.requestIDs.prefixDigits, HexDigits(requestNumber))
        } else {
            writer.append("X-Request-Id: ")
            writer.append(clientRequestID)
            writer.append("\r\n")
        }
        writer.appendTail(facts, handling: note, date: context.dateLine, connectionOption, now: now)
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
