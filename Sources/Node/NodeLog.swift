import Glibc
import Logging
import NIOCore
import Synchronization

/// Writes the node's log to standard error, one line `key=value …` an event (logfmt), without ever
/// making the thread that logs wait.
///
/// If standard error is not read, lines are dropped, and the next that gets through says how many.
struct NodeLog: LogHandler {
    /// What all copies of a handler share.
    private final class Output: Sendable {
        let writer = LineWriter(to: STDERR_FILENO)
        let dropped = Atomic<Int>(0)
    }

    var logLevel = Logger.Level.info
    var metadata = Logger.Metadata()
    private let output = Output()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var line = Self.line(
            event.level, "\(event.message)", metadata.merging(event.metadata ?? [:]) { $1 })
        let dropped = output.dropped.exchange(0, ordering: .relaxed)
        if dropped > 0 {
            line = Self.line(.warning, "lines of this log dropped", ["lines": "\(dropped)"]) + line
        }
        output.writer.write(ByteBuffer(string: line)) { [output] in
            output.dropped.add(dropped + 1, ordering: .relaxed)
        }
    }

    /// Returns when every line is written, or nobody takes them.
    func finish(on loop: any EventLoop) async {
        await output.writer.finish(on: loop)
    }

    private static func line(
        _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata
    ) -> String {
        var line = "\(CivilTime(SystemClock.wallTime()).isoText) level=\(level)"
        line += " message=\(quoted(message))"
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            line += " \(key)=\(quoted("\(value)"))"
        }
        return line + "\n"
    }

    /// In quotes if it could be read as anything but one word; no byte of it ends the line.
    private static func quoted(_ text: String) -> String {
        let isWord = text.utf8.allSatisfy { byte in
            byte > 0x20 && byte != 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
        }
        guard !isWord || text.isEmpty else { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\n": quoted += "\\n"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F: quoted += "?"
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
