package import Ground

/// The text form of sizes: a whole number and a unit, such as `512MiB`, or a bare `0`.
package enum SizeText {
    private static let units: [(name: String, bytes: UInt64)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
        ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000), ("B", 1),
    ]

    /// The names of the units, largest first.
    package static var unitNames: [String] { units.map(\.name) }

    /// Returns the number of bytes; `nil` if `text` is not a size or exceeds `UInt64.max`.
    package static func parse(_ text: String) -> UInt64? {
        guard let (number, unit) = splitQuantity(text) else { return nil }
        if unit.isEmpty { return number == 0 ? 0 : nil }
        guard let scale = units.first(where: { $0.name == unit }) else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: scale.bytes)
        return overflow ? nil : bytes
    }

    /// Returns `bytes` in the largest unit that divides it; ``parse(_:)`` returns the same number.
    package static func format(_ bytes: UInt64) -> String {
        if bytes == 0 { return "0B" }
        for unit in units where bytes.isMultiple(of: unit.bytes) {
            return "\(bytes / unit.bytes)\(unit.name)"
        }
        return "\(bytes)B"
    }
}

/// The text form of durations: a whole number and a unit, such as `30s`, or a bare `0`.
package enum DurationText {
    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000),
        ("s", 1_000_000_000), ("ms", 1_000_000),
    ]

    /// The names of the units, largest first.
    package static var unitNames: [String] { units.map(\.name) }

    /// Returns the duration; `nil` if `text` is not one or exceeds the range of ``Interval``.
    package static func parse(_ text: String) -> Interval? {
        guard let (number, unit) = splitQuantity(text) else { return nil }
        if unit.isEmpty { return number == 0 ? .zero : nil }
        guard let scale = units.first(where: { $0.name == unit }),
            let count = Int64(exactly: number)
        else { return nil }
        let (nanoseconds, overflow) = count.multipliedReportingOverflow(by: scale.nanoseconds)
        return overflow ? nil : Interval(nanoseconds: nanoseconds)
    }

    /// Returns `interval` in the largest unit that divides it.
    ///
    /// `interval` must not be negative and must be in whole milliseconds.
    package static func format(_ interval: Interval) -> String {
        if interval == .zero { return "0s" }
        for unit in units where interval.nanoseconds.isMultiple(of: unit.nanoseconds) {
            return "\(interval.nanoseconds / unit.nanoseconds)\(unit.name)"
        }
        return "\(interval.milliseconds)ms"
    }
}

/// Splits a text into its leading digits as a number and the rest as a unit; `nil` without a digit
/// or if the number exceeds `UInt64.max`.
private func splitQuantity(_ text: String) -> (number: UInt64, unit: String)? {
    let digits = text.utf8.prefix(while: ASCII.isDigit)
    guard let number = UInt64(Substring(digits)) else { return nil }
    return (number, String(text.dropFirst(digits.count)))
}
