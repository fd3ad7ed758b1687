import Glibc
package import Ground
package import HTTPRules
package import NIOCore
import Telemetry
import Wire

/// Writes a line per answer to standard output, from a thread of its own.
///
/// Each loop fills a buffer and hands it over four times a second or when it is full. What a buffer
/// holds are whole lines, so that a change of the format comes between two lines.
final class AccessLog: Sendable {
    private let counters: NodeCounters
    private let writer = LineWriter(to: STDOUT_FILENO)

    /// A buffer is handed over when it holds so much.
    static let bufferBytes = 64 << 10

    init(counters: NodeCounters) {
        self.counters = counters
    }

    /// Writes `lines` complete lines, or drops and counts them.
    func enqueue(_ buffer: ByteBuffer, lines: Int) {
        writer.write(buffer) { [counters] in counters.add(.accessLinesDropped, lines) }
    }

    /// Returns when everything handed over has been written, or nobody takes it.
    func finish(on loop: any EventLoop) async {
        await writer.finish(on: loop)
    }
}

/// One line of the access log: a request, and what became of it.
package struct AccessLine {
    /// How a line looks.
    package enum Format: Sendable {
        /// The Combined Log Format of Apache httpd.
        ///
        /// The second word, which is there for a name that no server asks for any more (RFC 1413),
        /// is the request's id.
        case combined
        /// One JSON object a line.
        case json
    }

    package var request: LoggedRequest
    package var remote: String
    /// The wall clock in milliseconds since 1970, when the answer ended.
    package var milliseconds: Int64
    /// 0 if there was no answer.
    package var status: UInt16
    package var bodyBytes: UInt64
    /// `hit`, `disk`, `revalidated`, `stale`, `collapsed`, `miss`, `peer`, `passed` or `-`.
    package var outcome: StaticString
    package var isComplete: Bool
    package var duration: Interval

    package init(
        _ request: LoggedRequest, remote: String, milliseconds: Int64, status: UInt16,
        bodyBytes: UInt64, outcome: StaticString, isComplete: Bool, duration: Interval
    ) {
        self.request = request
        self.remote = remote
        self.milliseconds = milliseconds
        self.status = status
        self.bodyBytes = bodyBytes
        self.outcome = outcome
        self.isComplete = isComplete
        self.duration = duration
    }

    /// Appends the line with its end; of a question of another node there is none in the combined
    /// format, whose readers take every line for a client's.
    ///
    /// - Returns: whether there is a line.
    package func append(to buffer: inout ByteBuffer, _ format: Format) -> Bool {
        switch format {
        case .combined where request.port == .peer: return false
        case .combined: buffer.writeCombined(self)
        case .json: buffer.writeJSON(self)
        }
        buffer.writeString("\n")
        return true
    }
}

extension ByteBuffer {
    fileprivate mutating func writeCombined(_ line: AccessLine) {
        let request = line.request
        let time = CivilTime(milliseconds: line.milliseconds).logText
        writeString("\(line.remote) \(request.id) - [\(time)] \"")
        if request.method.isEmpty {
            writeString("-")
        } else {
            writeEscaped(request.method)
            writeString(" ")
            writeEscaped(request.target)
            writeString(" \(request.version)")
        }
        writeString("\" \(line.status) \(line.bodyBytes) \"")
        writeEscaped(request.referer)
        writeString("\" \"")
        writeEscaped(request.userAgent)
        writeString("\"")
    }

    fileprivate mutating func writeJSON(_ line: AccessLine) {
        let request = line.request
        writeString("{\"time\":\"\(CivilTime(milliseconds: line.milliseconds).isoText)\"")
        writeString(",\"request_id\":\"\(request.id)\"")
        if let trace = request.trace { writeString(",\"trace_id\":\"\(trace.traceIDText)\"") }
        writeString(",\"port\":\"\(request.port.rawValue)\",\"remote\":\"\(line.remote)\"")
        writeString(",\"method\":\"")
        writeEscapedJSON(request.method)
        writeString("\",\"target\":\"")
        writeEscapedJSON(request.target)
        writeString("\",\"version\":\"\(request.version)\",\"status\":\(line.status)")
        writeString(",\"body_bytes\":\(line.bodyBytes),\"outcome\":\"\(line.outcome)\"")
        writeString(",\"complete\":\(line.isComplete)")
        writeString(",\"duration_us\":\(line.duration.nanoseconds / 1000),\"referer\":\"")
        writeEscapedJSON(request.referer)
        writeString("\",\"user_agent\":\"")
        writeEscapedJSON(request.userAgent)
        writeString("\"}")
    }

    /// As Apache httpd does: a letter of C or `\xhh` for what does not print, a backslash before
    /// quote and backslash, and `-` for nothing.
    private mutating func writeEscaped(_ bytes: [UInt8]) {
        if bytes.isEmpty { writeString("-") }
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): writeBytes([UInt8(ascii: "\\"), byte])
            case 0x20..<0x7F: writeInteger(byte)
            case 0x08: writeString("\\b")
            case 0x09: writeString("\\t")
            case 0x0A: writeString("\\n")
            case 0x0B: writeString("\\v")
            case 0x0D: writeString("\\r")
            default: writeString("\\x" + hexadecimal(byte))
            }
        }
    }

    /// Bytes that are not ASCII stand as the characters U+0080 to U+00FF: a target may hold any
    /// bytes.
    private mutating func writeEscapedJSON(_ bytes: [UInt8]) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): writeBytes([UInt8(ascii: "\\"), byte])
            case 0x20..<0x7F: writeInteger(byte)
            default: writeString("\\u00" + hexadecimal(byte))
            }
        }
    }

    private func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}

/// What the access log keeps of a request until its answer is given.
package struct LoggedRequest {
    /// To whom the request was put.
    package enum Port: String, Sendable {
        case data
        case admin
        /// It is a question of another node.
        case peer
    }

    package var port: Port
    package var id: RequestID
    /// Nil if it came without one.
    package var trace: TraceContext?
    /// The method as it was sent; empty for what was no request.
    package var method: [UInt8]
    package var target: [UInt8]
    /// As in `HTTP/1.1`.
    package var version: StaticString
    package var referer: [UInt8]
    package var userAgent: [UInt8]
    package var startedAt: Instant

    package init(
        on port: Port, as id: RequestID, trace: TraceContext? = nil, method: [UInt8],
        target: [UInt8], version: StaticString, referer: [UInt8] = [], userAgent: [UInt8] = [],
        startedAt: Instant
    ) {
        self.port = port
        self.id = id
        self.trace = trace
        self.method = method
        self.target = target
        self.version = version
        self.referer = referer
        self.userAgent = userAgent
        self.startedAt = startedAt
    }
}

extension LoggedRequest {
    /// The request that `parser` holds, whose bytes lie in `bytes`.
    init(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>,
        over carriage: RequestHandler.ProtocolVersion,
        on side: RequestHandler.Plane, as id: RequestID, _ now: Instant
    ) {
        self.init(
            on: Port(side), as: id,
            trace: parser.fields.contains(.traceparent)
                ? TraceContext(parser.fields.copy(), in: bytes) : nil,
            method: bytes.copy(parser.methodName.range), target: bytes.copy(parser.target.range),
            version: carriage == .http2 ? "HTTP/2.0" : parser.isHTTP10 ? "HTTP/1.0" : "HTTP/1.1",
            referer: parser.fields.first(.referer).map { bytes.copy($0.range) } ?? [],
            userAgent: parser.fields.first(.userAgent).map { bytes.copy($0.range) } ?? [],
            startedAt: now)
    }

    /// What could not be read as a request.
    init(unreadableOn side: RequestHandler.Plane, as id: RequestID, _ now: Instant) {
        self.init(
            on: Port(side), as: id, method: [], target: [], version: "-", startedAt: now)
    }
}

extension LoggedRequest.Port {
    fileprivate init(_ side: RequestHandler.Plane) {
        self = side == .admin ? .admin : .data
    }
}
