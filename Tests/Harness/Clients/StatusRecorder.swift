import Foundation

/// A client that sends the same pipelined requests repeatedly and records their statuses together.
package final class StatusRecorder: Sendable {
    private struct State {
        var seen: Set<[Int]> = []
        var rounds = 0
        var isOver = false
        var hasEnded = false
    }

    private let state = Monitor(State())

    /// Starts to send the requests.
    ///
    /// - Parameters:
    ///   - port: The server's port on 127.0.0.1.
    ///   - requests: The bytes of each request, whose response must leave the connection open.
    /// - Throws: A system error if the connection fails.
    package init(port: Int, _ requests: [[UInt8]]) throws {
        let connection = ThreadConfined(try HTTPConnection(port: port))
        Thread.detachNewThread { [state] in
            while !state.read(\.isOver) {
                let statuses = Self.ask(connection.value, requests)
                state.update { state in
                    state.seen.insert(statuses)
                    state.rounds += 1
                    if statuses.contains(0) { state.isOver = true }
                }
            }
            state.update { $0.hasEnded = true }
        }
    }

    deinit {
        state.update { $0.isOver = true }
    }

    /// Stops and returns the distinct status lists, 0 for a missing response, and the round count.
    package func stop(seconds: Double = 60) -> (seen: Set<[Int]>, rounds: Int) {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(seconds), for: \.hasEnded)
        return state.read { ($0.seen, $0.rounds) }
    }

    private static func ask(_ connection: HTTPConnection, _ requests: [[UInt8]]) -> [Int] {
        guard (try? connection.socket.send(Array(requests.joined()))) != nil else { return [0] }
        return requests.map { _ in connection.readResponse().status }
    }
}

/// A connection that is passed to one thread and used only there.
private struct ThreadConfined: @unchecked Sendable {
    let value: HTTPConnection

    init(_ value: HTTPConnection) {
        self.value = value
    }
}
