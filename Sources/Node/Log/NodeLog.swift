import Glibc
import HTTPRules
import Logging
import NIOCore
import NodeConfiguration
import Platform
import Synchronization

/// Log handler that writes one line per event to standard error and never blocks the calling
/// thread.
///
/// If standard error is not read, lines are dropped, and the next written line is preceded by their
/// number. All copies of a handler share the node's level and format, which may change at run time;
/// handlers made with ``alwaysWriting(_:)`` have a level of their own in addition.
struct NodeLog: LogHandler {
    /// The state that all copies of a handler share.
    private final class Output: Sendable {
        let writer = LineWriter(to: STDERR_FILENO)
        let dropped = Atomic<Int>(0)
        let level: Atomic<Int>
        let format: Atomic<Int>

        /// Creates the state with a level and a format.
        init(_ level: Logger.Level, _ format: Configuration.LogFormat) {
            self.level = Atomic(NodeLog.rank(level))
            self.format = Atomic(NodeLog.rank(format))
        }
    }

    /// The metadata of every event of this handler.
    var metadata = Logger.Metadata()
    private let output: Output
    /// The level from which lines are written whatever the node's level is; `nil` for none.
    private var levelMin: Logger.Level?

    /// Creates a handler with the node's level and format.
    init(_ level: Logger.Level, _ format: Configuration.LogFormat) {
        output = Output(level, format)
    }

    /// The least severe level that is written.
    var logLevel: Logger.Level {
        get {
            let level = Logger.Level.allCases[output.level.load(ordering: .relaxed)]
            return levelMin.map { min($0, level) } ?? level
        }
        nonmutating set { output.level.store(Self.rank(newValue), ordering: .relaxed) }
    }

    /// The format of the lines.
    var format: Configuration.LogFormat {
        get { Configuration.LogFormat.allCases[output.format.load(ordering: .relaxed)] }
        nonmutating set { output.format.store(Self.rank(newValue), ordering: .relaxed) }
    }

    /// Returns a handler of this log that writes lines of `level` and above in any case.
    func alwaysWriting(_ level: Logger.Level) -> NodeLog {
        var log = self
        log.levelMin = level
        return log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Formats an event and queues its line.
    func log(event: LogEvent) {
        let format = format
        let time = CivilTime(milliseconds: SystemClock.wallMilliseconds()).isoText
        var text = LogLine(
            time: time, level: event.level, message: "\(event.message)",
            metadata.merging(event.metadata ?? [:]) { $1 }
        ).text(format)
        let dropped = output.dropped.exchange(0, ordering: .relaxed)
        if dropped > 0 {
            let note = LogLine(
                time: time, level: .warning, message: "lines of this log dropped",
                ["lines": .stringConvertible(dropped)])
            text = note.text(format) + text
        }
        output.writer.write(ByteBuffer(string: text)) { [output] in
            output.dropped.add(dropped + 1, ordering: .relaxed)
        }
    }

    /// Returns when all lines are written, or after two seconds without a reader.
    func finish(on loop: any EventLoop) async {
        await output.writer.finish(on: loop)
    }

    /// Returns the position of a choice among all of its type.
    private static func rank<Choice: CaseIterable & Equatable>(_ choice: Choice) -> Int {
        Choice.allCases.enumerated().first { $1 == choice }?.offset ?? 0
    }
}
