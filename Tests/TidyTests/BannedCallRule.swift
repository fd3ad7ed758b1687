/// Calls that have no place in a room, each with what is to be used instead.
struct BannedCall: Sendable {
    /// What stands in the code, between boundaries of words.
    let call: String
    let instead: String

    /// In rooms that decide: no clock, dice, lock, I/O, Foundation or `unsafe`.
    static let inPureRooms: [BannedCall] =
        inAtomicRooms + [
            BannedCall(call: "Atomic", instead: "a value that the shell keeps"),
            BannedCall(call: "Synchronization", instead: "a value that the shell keeps"),
        ]

    /// The same where atomics are allowed.
    static let inAtomicRooms: [BannedCall] =
        inSeededRooms + [
            BannedCall(call: "Task {", instead: "an effect"),
            BannedCall(call: "DispatchQueue", instead: "an effect"),
            BannedCall(call: "Mutex", instead: "a value that the shell locks"),
            BannedCall(call: "NSLock", instead: "a value that the shell locks"),
            BannedCall(call: "Logger", instead: "a fact returned to the shell"),
            BannedCall(call: "print(", instead: "a fact returned to the shell"),
            BannedCall(call: "Foundation", instead: "the standard library"),
            BannedCall(call: "FoundationEssentials", instead: "the standard library"),
            BannedCall(call: "Glibc", instead: "a room at the edge"),
            BannedCall(call: "unsafe", instead: "Span<UInt8> by index"),
        ]

    /// Where a run is repeated from its seed: no clock of the machine and no dice of its own.
    static let inSeededRooms: [BannedCall] = [
        BannedCall(call: "ContinuousClock", instead: "an argument now: Instant"),
        BannedCall(call: "SuspendingClock", instead: "an argument now: Instant"),
        BannedCall(call: "Date(", instead: "WallTime, as an argument"),
        BannedCall(call: "Date.now", instead: "WallTime, as an argument"),
        BannedCall(call: "DispatchTime", instead: "an argument now: Instant"),
        BannedCall(call: "gettimeofday", instead: "WallTime, as an argument"),
        BannedCall(call: "clock_gettime", instead: "an argument now: Instant"),
        BannedCall(call: "SystemRandomNumberGenerator", instead: "an argument using: &dice"),
        BannedCall(call: "arc4random", instead: "an argument using: &dice"),
        BannedCall(call: "UUID(", instead: "a number thrown with using: &dice"),
        BannedCall(call: "Task.sleep", instead: "an effect that asks for a timer"),
    ]

    /// In every file, tests among them.
    static let everywhere: [BannedCall] = [
        BannedCall(call: "Thread.sleep", instead: "waiting for the event itself"),
        BannedCall(call: "usleep(", instead: "waiting for the event itself"),
        BannedCall(call: "nanosleep(", instead: "waiting for the event itself"),
        BannedCall(call: "sleep(", instead: "waiting for the event itself"),
        BannedCall(call: "@testable", instead: "package access, which release builds have too"),
        BannedCall(call: "try!", instead: "a throwing function"),
        // Its number means SO_DEBUG among the options of sockets, which only root may set.
        BannedCall(call: "socketOption(.tcp_nodelay", instead: "tcpOption"),
    ]

    /// The calls that are banned in a room, beside those that are banned everywhere.
    static func inRoom(_ kind: Room.Kind) -> [BannedCall] {
        switch kind {
        case .pure: inPureRooms
        case .atomics, .rendering: inAtomicRooms
        case .sansIO, .simulation: inSeededRooms
        case .edge, .program, .testSupport, .c, .test: []
        }
    }

    /// What a room of this kind must not call, beside what is banned everywhere.
    static func violations(in text: SwiftText, of kind: Room.Kind) -> [Violation] {
        let calls = inRoom(kind)
        guard !calls.isEmpty else { return [] }
        return violations(in: text, banning: calls) + diceViolations(in: text)
    }

    /// Where `calls` stand in the code of `text`.
    static func violations(in text: SwiftText, banning calls: [BannedCall]) -> [Violation] {
        var violations: [Violation] = []
        for (index, line) in text.code.enumerated() {
            for banned in calls where holds(line, banned.call) {
                violations.append(
                    Violation(
                        line: index + 1,
                        message: "\(banned.call) is banned here; use \(banned.instead)"))
            }
        }
        return violations
    }

    /// Throws of the dice that do not say whose dice: `.random(` and `.shuffled(` need `using:`.
    static func diceViolations(in text: SwiftText) -> [Violation] {
        let throwing = [".random(", ".randomElement(", ".shuffled(", ".shuffle("]
        return text.code.indices.filter { index in
            throwing.contains { text.code[index][...].place(of: $0) != nil }
                && !text.code[index...].prefix(4).joined().contains("using:")
        }.map { Violation(line: $0 + 1, message: "say whose dice: use using: &dice") }
    }

    /// True if `call` stands in `line` and is not a part of a longer word.
    private static func holds(_ line: String, _ call: String) -> Bool {
        var rest = line[...]
        while let range = rest.place(of: call) {
            let before = line[..<range.lowerBound].last
            let after = line[range.upperBound...].first
            let endsInWord = call.last.map(isWord) ?? false
            if !(before.map(isWord) ?? false), !endsInWord || !(after.map(isWord) ?? false) {
                return true
            }
            rest = line[range.upperBound...]
        }
        return false
    }

    private static func isWord(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || character == "_"
    }
}
