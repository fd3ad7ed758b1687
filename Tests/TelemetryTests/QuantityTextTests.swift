import Ground
import Telemetry
import Testing

@Suite("Sizes and durations as text")
struct QuantityTextTests {
    @Test(
        "A size is a whole number and a unit",
        arguments: [
            ("0", 0), ("0B", 0), ("1B", 1), ("1KiB", 1024), ("1KB", 1000), ("64KiB", 65_536),
            ("512MiB", 536_870_912), ("1MB", 1_000_000), ("2GB", 2_000_000_000),
            ("10GiB", 10_737_418_240), ("1TiB", 1_099_511_627_776), ("007KiB", 7168),
            ("16777215TiB", 16_777_215 << 40),
        ] as [(String, UInt64)])
    func sizesAreRead(text: String, bytes: UInt64) {
        #expect(SizeText.parse(text) == bytes)
    }

    @Test(
        "Other text is not a size",
        arguments: [
            "", " ", "12", "12x", "MiB", "-1MiB", "+1MiB", "1.5GiB", "1 MiB", " 1MiB", "1MiB ",
            "1mib", "1MIB", "1Mi", "1M", "0x10B", "1_000B", "١KiB", "16777216TiB",
            "18446744073709551616B", "1MiB1KiB",
        ])
    func otherTextIsNoSize(text: String) {
        #expect(SizeText.parse(text) == nil)
    }

    @Test(
        "A size is written in the largest unit that divides it",
        arguments: [
            (0, "0B"), (1, "1B"), (1000, "1KB"), (1024, "1KiB"), (1536, "1536B"),
            (512 << 20, "512MiB"), (1 << 40, "1TiB"), (1_000_000, "1MB"),
            (UInt64.max, "18446744073709551615B"),
        ] as [(UInt64, String)])
    func sizesAreShown(bytes: UInt64, text: String) {
        #expect(SizeText.format(bytes) == text)
        #expect(SizeText.parse(text) == bytes)
    }

    @Test(
        "A duration is a whole number and a unit",
        arguments: [
            ("0", 0), ("0s", 0), ("250ms", 250), ("30s", 30_000), ("10m", 600_000),
            ("1h", 3_600_000), ("365d", 31_536_000_000),
        ] as [(String, Int64)])
    func durationsAreRead(text: String, milliseconds: Int64) {
        #expect(DurationText.parse(text) == .milliseconds(milliseconds))
    }

    @Test(
        "Other text is not a duration",
        arguments: [
            "", "10", "s", "-1s", "1.5s", "1 s", "1S", "1min", "1h30m", "1us", "106752d",
            "9223372036854775808ms",
        ])
    func otherTextIsNoDuration(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test(
        "A duration is written in the largest unit that divides it",
        arguments: [
            (0, "0s"), (1, "1ms"), (1500, "1500ms"), (90_000, "90s"), (600_000, "10m"),
            (86_400_000, "1d"),
        ] as [(Int64, String)])
    func durationsAreShown(milliseconds: Int64, text: String) {
        #expect(DurationText.format(.milliseconds(milliseconds)) == text)
        #expect(DurationText.parse(text) == .milliseconds(milliseconds))
    }
}
