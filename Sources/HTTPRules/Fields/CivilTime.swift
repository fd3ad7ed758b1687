import Ground

/// A wall time in the formats of log lines, made from the parts of an IMF-fixdate (RFC 9110
/// §5.6.7).
package struct CivilTime {
    private let day: String
    private let month: String
    private let year: String
    private let clock: String
    private let milliseconds: Int64

    /// Creates the time from milliseconds since 1970.
    package init(milliseconds time: Int64) {
        var bytes: [UInt8] = []
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000)
        HTTPDate.append(WallTime(seconds: seconds), to: &bytes)
        let part = { (range: Range<Int>) in String(decoding: bytes[range], as: UTF8.self) }
        day = part(5..<7)
        month = part(8..<11)
        year = part(12..<16)
        clock = part(17..<25)
        milliseconds = rest
    }

    /// The time as in `21/Nov/2026:01:02:03 +0000`.
    package var logText: String { "\(day)/\(month)/\(year):\(clock) +0000" }

    /// The time as in `2026-11-21T01:02:03.004Z`.
    package var isoText: String {
        let number = (HTTPDate.monthNames.firstIndex(of: month) ?? 0) + 1
        let zeros = milliseconds < 10 ? "00" : milliseconds < 100 ? "0" : ""
        return "\(year)-\(number < 10 ? "0" : "")\(number)-\(day)T\(clock).\(zeros)\(milliseconds)Z"
    }
}
