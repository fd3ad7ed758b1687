import Ground

/// Formats of numbers for people.
package enum NumberFormat {
    /// Returns `1,234,567`; a negative number counts as 0.
    package static func count(_ number: some BinaryInteger) -> String {
        let digits = Array("\(max(0, number))")
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return text
    }

    /// Returns `1 image`, `2 images`.
    package static func plural(_ number: UInt64, _ one: String, _ many: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? one : many ?? one + "s")"
    }

    /// Returns a rate in four or five columns: `0`, `<0.1`, `7.3`, `412`, `4.2k`, `118k`, `1.3M`.
    package static func rate(_ perSecond: Double) -> String {
        guard perSecond.isFinite, perSecond > 0 else { return "0" }
        if perSecond < 0.1 { return "<0.1" }
        var (value, unit) = (perSecond, "")
        for larger in ["k", "M", "G"] where rounded(value, value < 9.95 ? 1 : 0) >= 1000 {
            (value, unit) = (value / 1000, larger)
        }
        return fixed(value, value < 9.95 ? 1 : 0) + unit
    }

    /// Returns `98.7%`, rounded down, so that 100 % means all; `–` without a number.
    package static func percent(_ share: Double?) -> String {
        guard let share, share.isFinite else { return "–" }
        let tenths = tenthsOfPercent(share)
        return tenths.isMultiple(of: 1000)
            ? "\(tenths / 10)%" : "\(tenths / 10).\(abs(tenths % 10))%"
    }

    /// Returns `33.3%`, `100.0%`, always with tenths.
    package static func share(_ share: Double) -> String {
        guard share.isFinite else { return "–" }
        let tenths = tenthsOfPercent(max(0, share))
        return "\(tenths / 10).\(tenths % 10)%"
    }

    /// Returns a share in tenths of a percent, rounded down.
    private static func tenthsOfPercent(_ share: Double) -> Int {
        // 0.987 in tenths of a percent is slightly less as a binary fraction.
        whole((share * 1000 + 1e-6).rounded(.down))
    }

    /// Returns a whole number, limited to 15 digits because another node may send any value.
    private static func whole(_ value: Double) -> Int { Int(max(-1e15, min(1e15, value))) }

    /// Returns `98%`, rounded down.
    package static func wholePercent(_ share: Double) -> String {
        guard share.isFinite else { return "–" }
        return "\(Int((min(1, max(0, share)) * 100 + 1e-6).rounded(.down)))%"
    }

    /// Returns `512 B`, `1.5 MiB`, `118 GiB`.
    package static func bytes(_ count: UInt64) -> String {
        scaled(Double(count)) { "\($0) \($1)" }
    }

    /// Returns bytes without a space and with a single letter as unit: `1.5M`.
    package static func shortBytes(_ count: UInt64) -> String {
        scaled(Double(count)) { "\($0)\($1.prefix(1))" }
    }

    /// Returns bytes per second: `1.5 MiB/s`.
    package static func byteRate(_ perSecond: Double) -> String {
        scaled(max(0, perSecond.isFinite ? perSecond : 0)) { "\($0) \($1)/s" }
    }

    /// Returns an amount scaled to a binary unit.
    private static func scaled(_ amount: Double, _ text: (String, String) -> String) -> String {
        var size = amount
        var unit = "B"
        for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] where size >= 999.5 {
            (size, unit) = (size / 1024, larger)
        }
        return text(fixed(size, unit == "B" || size >= 99.95 ? 0 : 1), unit)
    }

    /// Returns a duration in its two largest units: `2d 3h`, `4m 5s`, `900ms`.
    package static func duration(milliseconds: Int64) -> String {
        let milliseconds = max(0, milliseconds)
        if milliseconds < 1000 { return "\(milliseconds)ms" }
        let seconds = milliseconds / 1000
        let parts = [
            (seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
        ]
        let shown = parts.drop { $0.0 == 0 }.prefix(2).filter { $0.0 > 0 }
        return shown.map { "\($0.0)\($0.1)" }.joined(separator: " ")
    }

    /// Returns an age in its largest unit: `3h ago`; `now` below a second.
    package static func ago(milliseconds: Int64) -> String {
        let words = duration(milliseconds: milliseconds).split(separator: " ")
        return milliseconds < 1000 ? "now" : "\(words[0]) ago"
    }

    /// Returns a latency in microseconds: `200µs`, `1.5ms`, `2s`; `>10s` for an infinite one, and
    /// `–` for none.
    package static func latency(_ microseconds: Double?) -> String {
        guard let microseconds else { return "–" }
        guard microseconds.isFinite else { return ">10s" }
        if microseconds < 999.5 { return "\(fixed(microseconds, 0))µs" }
        if microseconds < 999_500 {
            let milliseconds = microseconds / 1000
            return "\(fixed(milliseconds, milliseconds < 9.95 ? 1 : 0))ms"
        }
        let seconds = microseconds / 1e6
        return "\(fixed(seconds, seconds < 9.95 ? 1 : 0))s"
    }

    /// Returns a value rounded to some digits.
    private static func rounded(_ value: Double, _ digits: Int) -> Double {
        digits == 0 ? value.rounded() : (value * 10).rounded() / 10
    }

    /// Returns a value with at most one decimal; `7.0` is `7`.
    private static func fixed(_ value: Double, _ digits: Int) -> String {
        let tenths = whole((value * 10).rounded())
        guard digits > 0, !tenths.isMultiple(of: 10) else { return "\(whole(value.rounded()))" }
        return "\(tenths / 10).\(tenths % 10)"
    }
}
