import NIOCore
import Telemetry

import Glibc

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
