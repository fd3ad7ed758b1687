import Foundation

/// Connections that ask a server for images at random, one after the other, until they are stopped
/// or the server is gone; every answer is held against what it has to be.
package final class ImageLoad: Sendable {
    /// An image and the target it is asked for by.
    package typealias RequestedImage = (target: String, image: TestImage)

    /// What came.
    package struct Counts: Sendable {
        /// Answers that looked whole.
        package var complete = 0
        /// Answers that broke off.
        package var truncated = 0
        /// Those that looked whole and were not the image, as text.
        package var wrong: [String] = []
    }

    private struct State {
        var tally = Counts()
        var running = 0
        var isOver = false
    }

    private let state = Monitor(State())

    /// Begins to ask; everything at random follows from `seed`.
    package init(
        port: Int, connections: Int, seed: UInt64, _ wanted: [RequestedImage]
    ) {
        for number in 0..<connections {
            state.update { $0.running += 1 }
            Thread.detachNewThread { [state] in
                Self.ask(port, wanted, seed: seed ^ UInt64(number) << 32, state)
                state.update { $0.running -= 1 }
            }
        }
    }

    deinit {
        state.update { $0.isOver = true }
    }

    /// Waits until so many answers have come whole; false if they do not come.
    package func waitForAnswers(_ count: Int, seconds: Double = 30) -> Bool {
        state.wait(until: .seconds(seconds)) { $0.tally.complete >= count }
    }

    /// Asks no more; what came.
    package func stop(seconds: Double = 60) -> Counts {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(seconds)) { $0.running == 0 }
        return state.read(\.tally)
    }

    private static func ask(
        _ port: Int, _ wanted: [RequestedImage], seed: UInt64, _ state: Monitor<State>
    ) {
        var seed = seed
        while let connection = try? HTTPConnection(port: port) {
            while true {
                guard !state.read(\.isOver) else { return }
                let (target, image) = wanted[Int(Noise.mix(&seed) % UInt64(wanted.count))]
                guard let response = try? connection.get(target, expecting: image) else { break }
                state.update { state in
                    guard response.isWhole else { return state.tally.truncated += 1 }
                    state.tally.complete += 1
                    if !response.matches(image) {
                        state.tally.wrong.append("\(image): \(response)")
                    }
                }
                guard response.isWhole else { break }
            }
        }
    }
}
