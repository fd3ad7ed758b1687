import Glibc
import Logging
import NIOCore
import Synchronization

/// Writes the node's log to standard error, one line an event, without ever making the thread that
/// logs wait.
///
/// If standard error is not read, lines are dropped, and the next that gets through says how many.
/// Level and format are those of the node: all copies of a handler have the same, and change
/// together while it runs; but for those made with ``admitting(_:)``.
struct NodeLog: LogHandler {
    /// What all copies of a handler share.
    private final class Output: Sendable {
        let writer = LineWriter(to: STDERR_FILENO)
        let dropped = Atomic<Int>(0)
        let level: Atomic<Int>
        let format: Atomic<Int>

        init(_ level: Logger.Level, _ format: Configuration.LogFormat) {
            self.level = Atomic(NodeLog.rank(level))
            self.format = Atomic(NodeLog.rank(format))
        }
    }

    var metadata = Logger.Metadata()
    private let output: Output
    /// Lines of this level and above are written whatever the node's level is; nil for none.
    private var levelMin: Logger.Level?

    init(_ level: Logger.Level, _ format: Configuration.LogFormat) {
        output = Output(level, format)
    }

    var logLevel: Logger.Level {
        get {
            let level = Logger.Level.allCases[output.level.load(ordering: .relaxed)]
            return levelMin.map { min($0, level) } ?? level
        }
        nonmutating set { output.level.store(Self.rank(newValue), ordering: .relaxed) }
    }

    var format: Configuration.LogFormat {
        get { Configuration.LogFormat.allCases[output.format.load(ordering: .relaxed)] }
        nonmutating set { output.format.store(Self.rank(newValue), ordering: .relaxed) }
    }

    /// The same log, which writes lines of this level and above in any case.
    func alwaysWriting(_ level: Logger.Level) -> NodeLog {
        var log = self
        log.levelMin = level
        return log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

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

    /// Returns when every line is written, or nobody takes them.
    func finish(on loop: any EventLoop) async {
        await output.writer.finish(on: loop)
    }

    private static func rank<Choice: CaseIterable & Equatable>(_ choice: Choice) -> Int {
        Choice.allCases.enumerated().first { $1 == choice }?.offset ?? 0
    }
}
