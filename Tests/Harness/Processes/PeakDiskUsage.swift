package import Foundation

/// Looks again and again at how many bytes the blocks below a directory take, as du(1) counts them.
package final class PeakDiskUsage: Sendable {
    private struct State {
        var peak = 0
        var samples = 0
        var isOver = false
        var hasEnded = false
    }

    private let state = Monitor(State())

    /// Begins to look.
    package init(of directory: URL) {
        Thread.detachNewThread { [state] in
            while !state.read({ $0.isOver }) {
                guard let bytes = try? PeakDiskUsage.bytes(below: directory) else { continue }
                state.update {
                    $0.peak = max($0.peak, bytes)
                    $0.samples += 1
                }
            }
            state.update { $0.hasEnded = true }
        }
    }

    deinit {
        state.update { $0.isOver = true }
    }

    /// Stops looking; the most bytes that were seen, and how often it was looked.
    package func stop() -> (bytes: Int, samples: Int) {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(30)) { $0.hasEnded }
        return state.read { ($0.peak, $0.samples) }
    }

    /// Bytes of all blocks below a directory now.
    package static func bytes(below directory: URL) throws -> Int {
        let result = try Program.run(
            try Program.find("du"), ["-s", "--block-size=1", directory.path])
        // A file may go while du looks at it; what it says counts all the same.
        let text = String(decoding: result.output, as: UTF8.self)
        guard let bytes = text.split(separator: "\t").first.flatMap({ Int($0) }) else {
            throw Program.NotFound(name: "du")
        }
        return bytes
    }
}
