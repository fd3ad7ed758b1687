package import Foundation

/// A sampler of the bytes allocated below a directory, as du(1) counts them.
package final class PeakDiskUsage: Sendable {
    private struct State {
        var peak = 0
        var samples = 0
        var isOver = false
        var hasEnded = false
    }

    private let state = Monitor(State())

    /// Starts to sample.
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

    /// Stops sampling and returns the peak in bytes and the number of samples.
    package func stop() -> (bytes: Int, samples: Int) {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(30)) { $0.hasEnded }
        return state.read { ($0.peak, $0.samples) }
    }

    /// Returns the bytes of all blocks below a directory now.
    package static func bytes(below directory: URL) throws -> Int {
        let result = try Program.run(
            try Program.find("du"), ["-s", "--block-size=1", directory.path])
        // A file may disappear while du runs; its output is valid all the same.
        let text = String(decoding: result.output, as: UTF8.self)
        guard let bytes = text.split(separator: "\t").first.flatMap({ Int($0) }) else {
            throw Program.NotFound(name: "du")
        }
        return bytes
    }
}
