import Ground
import HTTPRules

/// The `Date` line of an answer, written once a second for all answers of a loop.
struct DateLine {
    /// `Date: `, the date as RFC 9110 §5.6.7 prefers it, and CRLF.
    private(set) var bytes: [UInt8] = []
    private var shown: WallTime

    init(_ now: WallTime) {
        shown = now
        write()
    }

    mutating func update(_ now: WallTime) {
        guard now != shown else { return }
        shown = now
        write()
    }

    private mutating func write() {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: "Date: ".utf8)
        HTTPDate.append(shown, to: &bytes)
        bytes.append(contentsOf: "\r\n".utf8)
    }
}
