import Ground

/// Reads one HTTP date from left to right; every step answers nil when the bytes do not follow the
/// form.
struct HTTPDateParser {
    private var index: Int
    private let end: Int
    private var date = CivilDate(year: 0, month: 0, day: 0)
    private var secondOfDay: Int64 = 0

    init(index: Int, end: Int) {
        self.index = index
        self.end = end
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
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

    /// `Sunday, 06-Nov-94 08:49:37 GMT`.
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

    /// `Sun Nov  6 08:49:37 1994`.
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

    /// Hours, minutes and seconds; the second 60 exists (RFC 9110 §5.6.7).
    private mutating func time(_ bytes: Span<UInt8>) -> Bool {
        guard let hour = digits(bytes, 2), skip(bytes, ":"), let minute = digits(bytes, 2),
            skip(bytes, ":"), let second = digits(bytes, 2), hour < 24, minute < 60, second <= 60
        else { return false }
        secondOfDay = Int64(hour * 3600 + minute * 60 + second)
        return true
    }

    private mutating func dayName(_ bytes: Span<UInt8>) -> Int? {
        for day in 0..<7 where contains(bytes, CalendarNames.days[day]) { return day }
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
        for month in 0..<12 where contains(bytes, CalendarNames.months[month]) { return month + 1 }
        return nil
    }

    private mutating func zone(_ bytes: Span<UInt8>) -> Bool {
        contains(bytes, CalendarNames.zone)
    }

    private mutating func contains(_ bytes: Span<UInt8>, _ expected: InlineArray<3, UInt8>) -> Bool
    {
        guard end - index >= 3 else { return false }
        for offset in 0..<3
        where ASCII.lowercased(bytes[index + offset]) != ASCII.lowercased(expected[offset]) {
            return false
        }
        index += 3
        return true
    }
}
