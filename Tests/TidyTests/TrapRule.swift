/// What ends the process where a programmer has erred: never to be reached by bytes that came from
/// a client, an origin, a peer or a disk.
///
/// Force unwrapping is the linter's.
enum TrapRule {
    /// The rooms through which such bytes go.
    static let rooms = [
        "Ground", "HTTPRules", "Cluster", "Tiers", "Serving", "Wire", "Store", "Origin",
        "Platform", "NodeConfiguration", "Peering", "Front", "Node",
    ]

    /// Traps that stay, and why.
    struct Exception: Sendable {
        let reason: String
        /// How many of them each file has; from `Sources`, without the name's end.
        let files: [String: Int]
    }

    private static let calls = [
        "precondition(", "preconditionFailure(", "fatalError(", "assertionFailure(", "try!", "as!",
    ]

    /// The traps of a file.
    static func violations(in text: SwiftText) -> [Violation] {
        text.code.enumerated().flatMap { index, line in
            calls.flatMap { call in
                (0..<count(of: call, in: line[...])).map { _ in
                    Violation(
                        line: index + 1,
                        message: "\(call) ends the node; throw, or answer what is nothing")
                }
            }
        }
    }

    /// The violations that `exceptions` do not account for; one for each that is stale.
    static func violations(
        _ found: [Violation], excepting exceptions: [Exception] = exceptions
    ) -> [Violation] {
        let counts = Dictionary(grouping: found, by: \.path).mapValues(\.count)
        var allowed: [String: Int] = [:]
        for (file, count) in exceptions.flatMap(\.files) {
            allowed["Sources/\(file).swift", default: 0] += count
        }
        let stale = allowed.keys.sorted().filter { counts[$0] == nil }.map {
            Violation(path: $0, message: "has no trap any more: drop the exception")
        }
        return found.filter { allowed[$0.path] != counts[$0.path] } + stale
    }

    private static func count(of call: String, in line: Substring) -> Int {
        guard let range = line.place(of: call) else { return 0 }
        let before = line[..<range.lowerBound].last
        let isWhole = !(before.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false)
        return (isWhole ? 1 : 0) + count(of: call, in: line[range.upperBound...])
    }
}
