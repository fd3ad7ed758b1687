import Ground
import HTTPRules

/// A date in any of the three forms of HTTP; the first byte is the clock, in years of 365 days
/// since 1970.
///
/// Invariants: a parsed date is within four-digit years, is written in 29 bytes, and is read from
/// them as the same; no two-digit year is more than 50 years after now.
func fuzzDate(_ input: [UInt8]) {
    let now = WallTime(seconds: Int64(input[0]) * 365 * 86_400)
    let text = Array(input.dropFirst())
    guard let time = HTTPDate.parse(text.span, at: 0..<text.count, now: now) else { return }
    // A leap second at the end of the year 9999 belongs to the next, which has no form.
    precondition((-62_167_219_200...253_402_300_800).contains(time.seconds))
    if time.seconds == 253_402_300_800 { return }
    var written: [UInt8] = []
    HTTPDate.append(time, to: &written)
    precondition(written.count == HTTPDate.bytesCount)
    let again = HTTPDate.parse(written.span, at: 0..<written.count, now: now)
    precondition(again == time)
    let isShort = text.contains(UInt8(ascii: "-"))
    precondition(!isShort || time.seconds - now.seconds <= 51 * 366 * 86_400)
}
