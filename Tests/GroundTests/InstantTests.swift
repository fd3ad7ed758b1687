import Ground
import Testing

@Suite struct InstantTests {
    @Test("Adding and subtracting an interval saturates at both ends")
    func instantSaturates() {
        let late = Instant(nanoseconds: .max - 1)
        let early = Instant(nanoseconds: .min + 1)
        #expect(late + .seconds(1) == .distantFuture)
        #expect(early + .seconds(-1) == Instant(nanoseconds: .min))
        #expect(early - .seconds(1) == Instant(nanoseconds: .min))
        #expect(late - .seconds(-1) == .distantFuture)
        #expect(late - Interval(nanoseconds: .min) == .distantFuture)
        #expect(
            Instant.zero + .seconds(2) - .milliseconds(500) == Instant(nanoseconds: 1_500_000_000))
    }

    @Test("The difference of two instants saturates and may be negative")
    func difference() {
        let early = Instant(nanoseconds: .min)
        let one = Instant(nanoseconds: 1)
        #expect(Instant.distantFuture - early == Interval(nanoseconds: .max))
        #expect(early - Instant.distantFuture == Interval(nanoseconds: .min))
        #expect(Instant.zero - one == Interval(nanoseconds: -1))
    }

    @Test(
        "Seconds and milliseconds saturate",
        arguments: [
            (Interval.seconds(3), 3_000_000_000), (.seconds(.max), .max), (.seconds(.min), .min),
            (.milliseconds(-2), -2_000_000), (.milliseconds(.max), .max),
            (.milliseconds(.min), .min), (.seconds(9_223_372_036), 9_223_372_036_000_000_000),
            (.seconds(9_223_372_037), .max),
        ] as [(Interval, Int64)])
    func scaling(interval: Interval, nanoseconds: Int64) {
        #expect(interval.nanoseconds == nanoseconds)
    }

    @Test("Intervals are rounded towards zero and added without overflow")
    func intervals() {
        #expect(Interval(nanoseconds: 1_999_999_999).seconds == 1)
        #expect(Interval(nanoseconds: -1_999_999_999).seconds == -1)
        #expect(Interval(nanoseconds: -1_999_999).milliseconds == -1)
        #expect(Interval.seconds(1) + .milliseconds(1) == Interval(nanoseconds: 1_001_000_000))
        #expect(Interval(nanoseconds: .max) + .seconds(1) == Interval(nanoseconds: .max))
        #expect(Interval(nanoseconds: .min) + .seconds(-1) == Interval(nanoseconds: .min))
    }

    @Test("Instants, intervals and wall times are ordered like their numbers")
    func order() {
        #expect(Instant.zero < .distantFuture)
        #expect(Interval.seconds(-1) < .zero)
        #expect(WallTime(seconds: -1) < WallTime(seconds: 0))
    }
}
