import Glibc
package import Ground
package import HTTPRules
package import NIOCore
import Platform
import Telemetry
import Wire

/// Writer of the access log to standard output, on its own thread.
///
/// Each loop fills a buffer and passes it on four times a second or when it is full. Buffers hold
/// whole lines, so a change of the format takes effect between two lines.
package final class AccessLog: Sendable {
    private let counters: NodeCounters
    private let writer = LineWriter(to: STDOUT_FILENO)

    /// Creates a writer that counts dropped lines in `counters`.
    init(counters: NodeCounters) {
        self.counters = counters
    }

    /// Queues `lines` complete lines for writing; drops and counts them if the queue is full.
    fileprivate func enqueue(_ buffer: ByteBuffer, lines: Int) {
        writer.write(buffer) { [counters] in counters.add(.accessLinesDropped, lines) }
    }

    /// Returns when everything queued has been written, or the reader has stopped reading.
    package func finish(on loop: any EventLoop) async {
        await writer.finish(on: loop)
    }
}

/// The lines of one event loop that were not passed to the writer yet.
struct AccessLogBuffer {
    /// Format of the lines; `nil` if the log is disabled.
    var format: AccessLine.Format?
    private var buffer = ByteBuffer()
    /// Number of lines in ``buffer``.
    private var lines = 0

    /// Size at which a buffer is passed on, in bytes.
    private static let bytesMax = 64 << 10

    /// Creates an empty buffer of lines in `format`.
    init(format: AccessLine.Format?) {
        self.format = format
    }

    /// Appends a line, unless the log is disabled or has no line for it, and passes a full buffer
    /// on to `log`.
    mutating func append(_ line: AccessLine, to log: AccessLog) {
        guard let format, line.append(to: &buffer, format) else { return }
        lines += 1
        if buffer.readableBytes >= Self.bytesMax { flush(to: log) }
    }

    /// Passes the lines on to `log`.
    mutating func flush(to log: AccessLog) {
        guard lines > 0 else { return }
        log.enqueue(buffer, lines: lines)
        buffer = ByteBuffer()
        lines = 0
    }
}

/// One line of the access log: a request and its outcome.
package struct AccessLine {
    /// Format of a line.
    package enum Format: Sendable {
        /// The Combined Log Format of Apache httpd.
        ///
        /// The second word, originally the identity according to RFC 1413, is the request ID.
        case combined
        /// One JSON object per line.
        case json
    }

    /// The request.
    package var request: LoggedRequest
    /// Address of the client, or `-`.
    package var remote: String
    /// Wall clock in milliseconds since 1970 at the end of the response.
    package var milliseconds: Int64
    /// Status of the response; 0 if there was none.
    package var status: UInt16
    /// Bytes of the body that were sent.
    package var bodyBytes: UInt64
    /// Cache result: `hit`, `disk`, `revalidated`, `stale`, `collapsed`, `miss`, `peer`, `passed`
    /// or `-`.
    package var outcome: StaticString
    /// False if the response was broken off.
    package var isComplete: Bool
    /// Time from the request's head to the end of the response.
    package var duration: Interval

    /// Creates a line from its parts.
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

    /// Appends the line with its line end; returns false, with nothing appended, if the format has
    /// no line for it.
    ///
    /// Peer queries have no line in the combined format, whose readers take every line for a client
    /// request.
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
    /// Writes the line in the combined format, without its end.
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

    /// Writes the line as a JSON object, without its end.
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

    /// Writes bytes escaped as by Apache httpd: C escapes or `\xhh` for unprintable bytes, a
    /// backslash before quotes and backslashes, and `-` for an empty value.
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

    /// Writes bytes as the content of a JSON string; those that are not ASCII become the characters
    /// U+0080 to U+00FF, because a target may contain any bytes.
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

/// The parts of a request that the access log needs until the response ends.
package struct LoggedRequest {
    /// Port that received the request.
    package enum Port: String, Sendable {
        case data
        case admin
        /// The request is a query of another node.
        case peer
    }

    /// The port.
    package var port: Port
    /// The request ID.
    package var id: RequestID
    /// Trace context of the request; `nil` if it has none.
    package var trace: TraceContext?
    /// The method as sent; empty if the request could not be parsed.
    package var method: [UInt8]
    /// The request target as sent; empty if the request could not be parsed.
    package var target: [UInt8]
    /// Protocol version, such as `HTTP/1.1`.
    package var version: StaticString
    /// Value of Referer; empty if absent.
    package var referer: [UInt8]
    /// Value of User-Agent; empty if absent.
    package var userAgent: [UInt8]
    /// When the head was read.
    package var startedAt: Instant

    /// Creates the record of a request from its parts.
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
    /// Creates the record of the request that `parser` has parsed from `bytes`.
    init(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>,
        over carriage: HTTPVersion,
        on side: Plane, as id: RequestID, _ now: Instant
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

    /// Creates the record of a request that could not be parsed.
    init(unreadableOn side: Plane, as id: RequestID, _ now: Instant) {
        self.init(
            on: Port(side), as: id, method: [], target: [], version: "-", startedAt: now)
    }
}

extension LoggedRequest.Port {
    fileprivate init(_ side: Plane) {
        self = side == .admin ? .admin : .data
    }
}
