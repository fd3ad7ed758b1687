import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

import Glibc

/// Writes a line per answer to standard output, from a thread of its own.
///
/// Each loop fills a buffer and hands it over four times a second or when it is full. What a buffer
/// holds are whole lines, so that a change of the format comes between two lines.
final class AccessLog: Sendable {
    /// How a line looks.
    enum Format: Sendable {
        /// The Combined Log Format of Apache httpd.
        case combined
        /// One JSON object a line.
        case json
    }

    private let counters: NodeCounters
    private let writer = LineWriter(to: STDOUT_FILENO)

    /// A buffer is handed over when it holds so much.
    static let bufferBytes = 64 << 10

    init(counters: NodeCounters) {
        self.counters = counters
    }

    /// Writes `lines` complete lines, or drops and counts them.
    func hand(over buffer: ByteBuffer, lines: Int) {
        writer.write(buffer) { [counters] in counters.add(.accessLinesDropped, lines) }
    }

    /// Returns when everything handed over has been written, or nobody takes it.
    func finish(on loop: any EventLoop) async {
        await writer.finish(on: loop)
    }
}

/// What the log keeps of a request until its answer is given.
struct LoggedRequest {
    /// The method as it was sent; empty for what was no request.
    var method: [UInt8]
    var target: [UInt8]
    var version: StaticString
    var referer: [UInt8]
    var userAgent: [UInt8]
    var startedAt: Instant

    /// The request that `parser` holds, whose bytes lie in `bytes`.
    init(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>, over carriage: Door.Carriage,
        _ now: Instant
    ) {
        method = bytes.copy(parser.methodName.range)
        target = bytes.copy(parser.target.range)
        version =
            carriage == .http2 ? "HTTP/2.0" : parser.isHTTP10 ? "HTTP/1.0" : "HTTP/1.1"
        referer = parser.fields.first(.referer).map { bytes.copy($0.range) } ?? []
        userAgent = parser.fields.first(.userAgent).map { bytes.copy($0.range) } ?? []
        startedAt = now
    }

    /// What could not be read as a request.
    init(unreadableAt now: Instant) {
        method = []
        target = []
        version = "-"
        referer = []
        userAgent = []
        startedAt = now
    }
}

/// What the log says of an answer.
struct LoggedAnswer {
    var remote: String
    var wallTime: WallTime
    var status: UInt16
    var bodyBytes: UInt64
    /// `hit`, `disk`, `stale`, `outlived`, `collapsed`, `miss`, `passed` or `-`.
    var outcome: StaticString
    var isComplete: Bool
    var took: Interval
}

extension ByteBuffer {
    /// Appends one line in `format`.
    mutating func writeAccessLine(
        _ request: LoggedRequest, _ answer: LoggedAnswer, _ format: AccessLog.Format
    ) {
        switch format {
        case .combined: writeCombined(request, answer)
        case .json: writeJSON(request, answer)
        }
        writeString("\n")
    }

    private mutating func writeCombined(_ request: LoggedRequest, _ answer: LoggedAnswer) {
        writeString("\(answer.remote) - - [\(CivilTime(answer.wallTime).logText)] \"")
        writeEscaped(request.method)
        writeString(" ")
        writeEscaped(request.target)
        writeString(" \(request.version)\" \(answer.status) \(answer.bodyBytes) \"")
        writeEscaped(request.referer)
        writeString("\" \"")
        writeEscaped(request.userAgent)
        writeString("\"")
    }

    private mutating func writeJSON(_ request: LoggedRequest, _ answer: LoggedAnswer) {
        writeString("{\"time\":\"\(CivilTime(answer.wallTime).isoText)\"")
        writeString(",\"remote\":\"\(answer.remote)\",\"method\":\"")
        writeEscapedJSON(request.method)
        writeString("\",\"target\":\"")
        writeEscapedJSON(request.target)
        writeString("\",\"version\":\"\(request.version)\",\"status\":\(answer.status)")
        writeString(",\"body_bytes\":\(answer.bodyBytes),\"outcome\":\"\(answer.outcome)\"")
        writeString(",\"complete\":\(answer.isComplete)")
        writeString(",\"duration_us\":\(answer.took.nanoseconds / 1000),\"referer\":\"")
        writeEscapedJSON(request.referer)
        writeString("\",\"user_agent\":\"")
        writeEscapedJSON(request.userAgent)
        writeString("\"}")
    }

    /// As Apache httpd does: `\xhh` for what does not print, a backslash before quote and
    /// backslash.
    private mutating func writeEscaped(_ bytes: [UInt8]) {
        if bytes.isEmpty { writeString("-") }
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): writeBytes([UInt8(ascii: "\\"), byte])
            case 0x20..<0x7F: writeInteger(byte)
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
