package import Foundation

/// Dates as HTTP writes them (RFC 9110 §5.6.7, IMF-fixdate).
package enum HTTPDateFormat {
    /// The date as text, for example `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func text(_ date: Date) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let part = calendar.dateComponents(
            [.year, .month, .day, .hour, .minute, .second, .weekday], from: date)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let day = days[(part.weekday ?? 1) - 1]
        let month = months[(part.month ?? 1) - 1]
        let clock = [part.hour, part.minute, part.second].map { padded($0 ?? 0) }
        return "\(day), \(padded(part.day ?? 0)) \(month) \(part.year ?? 0) "
            + clock.joined(separator: ":") + " GMT"
    }

    private static func padded(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
