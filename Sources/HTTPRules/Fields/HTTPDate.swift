package import Ground

/// The dates of HTTP (RFC 9110 §5.6.7): parsed in all three forms, written in the preferred one.
///
/// The form must match byte for byte, except that case is ignored (RFC 9111 §4.2). The name of the
/// day must be valid, but need not fit the date. A leap second counts as the first second of the
/// next minute.
package enum HTTPDate {
    /// The length in bytes of the preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static let bytesCount = 29

    /// Parses the date in `range`; `nil` if it has none of the three forms or does not exist.
    ///
    /// A year of two digits that would lie more than 50 years after `now` is taken to be in the
    /// century before.
    package static func parse(
        _ bytes: Span<UInt8>, at range: Range<Int>, now: WallTime
    ) -> WallTime? {
        var reader = HTTPDateParser(index: range.lowerBound, end: range.upperBound)
        guard let comma = commaOffset(bytes, at: range) else { return reader.asctime(bytes) }
        return comma == 3 ? reader.fixdate(bytes) : reader.rfc850(bytes, now: now)
    }

    /// Returns the offset of the first comma from the start of `range`; `nil` if there is none.
    private static func commaOffset(_ bytes: Span<UInt8>, at range: Range<Int>) -> Int? {
        for index in range where bytes[index] == UInt8(ascii: ",") {
            return index - range.lowerBound
        }
        return nil
    }

    /// Appends the date in the preferred form; years before 0 and after 9999 are clamped to 0000
    /// and 9999.
    package static func append(_ time: WallTime, to bytes: inout [UInt8]) {
        let text = text(time)
        for index in 0..<bytesCount { bytes.append(text[index]) }
    }

    /// Returns the date in the preferred form; years before 0 and after 9999 are clamped to 0000
    /// and 9999.
    package static func text(_ time: WallTime) -> InlineArray<29, UInt8> {
        let earliest: Int64 = -62_167_219_200
        let latest: Int64 = 253_402_300_799
        let seconds = min(max(time.seconds, earliest), latest)
        let days = floorDivide(seconds, 86_400)
        let rest = Int(seconds - days * 86_400)
        let date = CivilDate(daysSince1970: days)
        // 1970-01-01 was a Thursday, the fourth day after Sunday.
        let weekday = Int((days + 4) % 7 + 7) % 7
        // The following lines fill in everything but the spaces.
        var text: InlineArray<29, UInt8> = .init(repeating: 0x20)
        put(CalendarNames.days[weekday], into: &text, at: 0)
        text[3] = UInt8(ascii: ",")
        putTwo(date.day, into: &text, at: 5)
        put(CalendarNames.months[date.month - 1], into: &text, at: 8)
        putTwo(date.year / 100, into: &text, at: 12)
        putTwo(date.year % 100, into: &text, at: 14)
        putTwo(rest / 3600, into: &text, at: 17)
        text[19] = UInt8(ascii: ":")
        putTwo(rest / 60 % 60, into: &text, at: 20)
        text[22] = UInt8(ascii: ":")
        putTwo(rest % 60, into: &text, at: 23)
        put(CalendarNames.zone, into: &text, at: 26)
        return text
    }

    /// The names of the months as dates spell them, January first.
    package static let monthNames = (0..<12).map { month in
        let name = CalendarNames.months[month]
        return String(decoding: [name[0], name[1], name[2]], as: UTF8.self)
    }

    private static func put(
        _ name: InlineArray<3, UInt8>, into text: inout InlineArray<29, UInt8>, at index: Int
    ) {
        for offset in 0..<3 { text[index + offset] = name[offset] }
    }

    private static func putTwo(
        _ number: Int, into text: inout InlineArray<29, UInt8>, at index: Int
    ) {
        text[index] = 0x30 + UInt8(number / 10)
        text[index + 1] = 0x30 + UInt8(number % 10)
    }

    /// Returns the quotient rounded down; `divisor` must be positive.
    static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
        let quotient = number / divisor
        return number % divisor < 0 ? quotient - 1 : quotient
    }
}

/// A day of the Gregorian calendar.
struct CivilDate {
    var year: Int
    /// The month, 1 to 12.
    var month: Int
    /// The day of the month, 1 to 31.
    var day: Int

    /// The number of days in 400 years, after which the calendar repeats.
    private static let cycleDays: Int64 = 146_097

    init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// Creates the date of a day counted from 1970-01-01.
    ///
    /// Years are counted from March internally, so that a leap day is the last of its year.
    init(daysSince1970 days: Int64) {
        let sinceMarch0 = days + 719_468
        let cycle = HTTPDate.floorDivide(sinceMarch0, Self.cycleDays)
        let dayOfCycle = Int(sinceMarch0 - cycle * Self.cycleDays)
        let yearOfCycle =
            (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = Int(cycle) * 400 + yearOfCycle + (month <= 2 ? 1 : 0)
    }

    var daysSince1970: Int64 {
        let marchYear = Int64(month <= 2 ? year - 1 : year)
        let cycle = HTTPDate.floorDivide(marchYear, 400)
        let yearOfCycle = marchYear - cycle * 400
        let monthFromMarch = Int64(month > 2 ? month - 3 : month + 9)
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
        let dayOfCycle = yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear
        return cycle * Self.cycleDays + dayOfCycle - 719_468
    }

    /// True if the month has such a day.
    var exists: Bool {
        guard day >= 1, 1...12 ~= month else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        switch month {
        case 2: return day <= (isLeap ? 29 : 28)
        case 4, 6, 9, 11: return day <= 30
        default: return day <= 31
        }
    }
}

/// The English names in dates (RFC 9110 §5.6.7).
enum CalendarNames {
    static let days: InlineArray<7, InlineArray<3, UInt8>> = [
        [0x53, 0x75, 0x6E], [0x4D, 0x6F, 0x6E], [0x54, 0x75, 0x65], [0x57, 0x65, 0x64],
        [0x54, 0x68, 0x75], [0x46, 0x72, 0x69], [0x53, 0x61, 0x74],
    ]
    static let months: InlineArray<12, InlineArray<3, UInt8>> = [
        [0x4A, 0x61, 0x6E], [0x46, 0x65, 0x62], [0x4D, 0x61, 0x72], [0x41, 0x70, 0x72],
        [0x4D, 0x61, 0x79], [0x4A, 0x75, 0x6E], [0x4A, 0x75, 0x6C], [0x41, 0x75, 0x67],
        [0x53, 0x65, 0x70], [0x4F, 0x63, 0x74], [0x4E, 0x6F, 0x76], [0x44, 0x65, 0x63],
    ]
    static let zone: InlineArray<3, UInt8> = [0x47, 0x4D, 0x54]
}

/// A parser for one HTTP date, from left to right; each step returns `nil` or false if the bytes do
/// not follow the form.
struct HTTPDateParser {
    private var index: Int
    private let end: Int
    private var date = CivilDate(year: 0, month: 0, day: 0)
    private var secondOfDay: Int64 = 0

    init(index: Int, end: Int) {
        self.index = index
        self.end = end
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
    mutating func fixdate(_ bytes: Span<UInt8>) -> WallTime? {
        guard dayName(bytes) != nil, skip(bytes, ","), skip(bytes, " "),
            let day = digits(bytes, 2), skip(bytes, " "),
            let month = month(bytes), skip(bytes, " "),
            let year = digits(bytes, 4), skip(bytes, " "),
            time(bytes), skip(bytes, " "), zone(bytes)
        else { return nil }
        date = CivilDate(year: year, month: month, day: day)
        return finish()
    }

    /// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
    mutating func rfc850(_ bytes: Span<UInt8>, now: WallTime) -> WallTime? {
        guard longDayName(bytes), skip(bytes, ","), skip(bytes, " "),
            let day = digits(bytes, 2), skip(bytes, "-"),
            let month = month(bytes), skip(bytes, "-"),
            let shortYear = digits(bytes, 2), skip(bytes, " "),
            time(bytes), skip(bytes, " "), zone(bytes)
        else { return nil }
        let thisYear = CivilDate(daysSince1970: HTTPDate.floorDivide(now.seconds, 86_400)).year
        date = CivilDate(
            year: thisYear - thisYear % 100 + shortYear, month: month, day: day)
        var earlier = date
        earlier.year -= 50
        if earlier.daysSince1970 * 86_400 + secondOfDay > now.seconds { date.year -= 100 }
        return finish()
    }

    /// Parses `Sun Nov  6 08:49:37 1994`.
    mutating func asctime(_ bytes: Span<UInt8>) -> WallTime? {
        guard dayName(bytes) != nil, skip(bytes, " "),
            let month = month(bytes), skip(bytes, " "),
            let day = skip(bytes, " ") ? digits(bytes, 1) : digits(bytes, 2), skip(bytes, " "),
            time(bytes), skip(bytes, " "),
            let year = digits(bytes, 4)
        else { return nil }
        date = CivilDate(year: year, month: month, day: day)
        return finish()
    }

    /// Returns the parsed time; `nil` if bytes are left over or the date does not exist.
    private func finish() -> WallTime? {
        guard index == end, date.exists else { return nil }
        return WallTime(seconds: date.daysSince1970 * 86_400 + secondOfDay)
    }

    private mutating func skip(_ bytes: Span<UInt8>, _ expected: Unicode.Scalar) -> Bool {
        guard index < end, bytes[index] == UInt8(ascii: expected) else { return false }
        index += 1
        return true
    }

    private mutating func digits(_ bytes: Span<UInt8>, _ count: Int) -> Int? {
        guard end - index >= count else { return nil }
        var number = 0
        for place in index..<index + count {
            guard ASCII.isDigit(bytes[place]) else { return nil }
            number = number * 10 + Int(bytes[place] &- 0x30)
        }
        index += count
        return number
    }

    /// Parses hours, minutes and seconds; second 60 is valid (RFC 9110 §5.6.7).
    private mutating func time(_ bytes: Span<UInt8>) -> Bool {
        guard let hour = digits(bytes, 2), skip(bytes, ":"), let minute = digits(bytes, 2),
            skip(bytes, ":"), let second = digits(bytes, 2), hour < 24, minute < 60, second <= 60
        else { return false }
        secondOfDay = Int64(hour * 3600 + minute * 60 + second)
        return true
    }

    /// Parses a name of three letters and returns its index from Sunday, 0.
    private mutating func dayName(_ bytes: Span<UInt8>) -> Int? {
        for day in 0..<7 where skip(bytes, CalendarNames.days[day]) { return day }
        return nil
    }

    private mutating func longDayName(_ bytes: Span<UInt8>) -> Bool {
        guard let day = dayName(bytes) else { return false }
        let tail: String =
            switch day {
            case 2: "sday"
            case 3: "nesday"
            case 4: "rsday"
            case 6: "urday"
            default: "day"
            }
        let tailEnd = index + tail.utf8.count
        guard tailEnd <= end, bytes.matchesIgnoringCase(tail, at: index..<tailEnd) else {
            return false
        }
        index = tailEnd
        return true
    }

    private mutating func month(_ bytes: Span<UInt8>) -> Int? {
        for month in 0..<12 where skip(bytes, CalendarNames.months[month]) { return month + 1 }
        return nil
    }

    private mutating func zone(_ bytes: Span<UInt8>) -> Bool {
        skip(bytes, CalendarNames.zone)
    }

    /// Skips the three letters `expected`, in any case; returns false if others follow.
    private mutating func skip(_ bytes: Span<UInt8>, _ expected: InlineArray<3, UInt8>) -> Bool {
        guard end - index >= 3 else { return false }
        for offset in 0..<3
        where ASCII.lowercased(bytes[index + offset]) != ASCII.lowercased(expected[offset]) {
            return false
        }
        index += 3
        return true
    }
}

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
