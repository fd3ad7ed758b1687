import Ground
import Testing
import Tiers

@Suite("How a disk limit is divided")
struct DiskPlanTests {
    private static let overhead = 8192

    @Test("a limit that is too small is refused, with the least that is enough")
    func tooSmall() throws {
        for limit in [0, 1, DiskPlan.limitBytesMin - 1] {
            let refusal = #expect(throws: DiskPlan.TooSmall.self) {
                try DiskPlan(limitBytes: limit, formerSegmentBytes: nil)
            }
            #expect(refusal?.neededBytes == DiskPlan.limitBytesMin)
        }
        let least = try DiskPlan(limitBytes: DiskPlan.limitBytesMin, formerSegmentBytes: nil)
        #expect(least.segments == 4 && least.segmentBytes == 1 << 20)
    }

    @Test("from the least limit to 100 TiB, all files together stay below it and use most of it")
    func withinLimit() throws {
        var dice = Dice(seed: 1)
        var limit = DiskPlan.limitBytesMin
        while limit <= 100 << 40 {
            let plan = try DiskPlan(limitBytes: limit, formerSegmentBytes: nil)
            let used = try check(plan, limit)
            #expect(plan.segmentBytes & (plan.segmentBytes - 1) == 0)
            #expect(plan.segmentBytes <= 1 << 30 && plan.segments <= 65_000)
            // One segment's room is lost at most, and up to 64 TiB all can be named.
            let isNearlyAll = limit - used < UInt64(2 * plan.segmentBytes) + 1 << 20
            #expect(isNearlyAll || limit > 60 << 40, "\(used) of \(limit) bytes")
            limit += limit / 50 + UInt64.random(in: 0..<1 << 20, using: &dice)
        }
    }

    @Test("segments keep their size from limit to limit as long as there are enough of them")
    func formerSize() throws {
        let first = try DiskPlan(limitBytes: 10 << 30, formerSegmentBytes: nil)
        #expect(first.segmentBytes == 128 << 20 || first.segments >= 64)
        for limit in [2 << 30, 10 << 30, 100 << 30, 1 << 40] as [UInt64] {
            let former = UInt64(first.segmentBytes)
            let plan = try DiskPlan(limitBytes: limit, formerSegmentBytes: former)
            #expect(plan.segmentBytes == first.segmentBytes)
            _ = try check(plan, limit)
        }
        let few = try DiskPlan(limitBytes: 256 << 20, formerSegmentBytes: 128 << 20)
        #expect(few.segmentBytes < 128 << 20)
        let many = try DiskPlan(limitBytes: 1 << 40, formerSegmentBytes: 1 << 20)
        #expect(many.segmentBytes > 1 << 20)
    }

    @Test(
        "a former size that no log has is not kept",
        arguments: [0, 1, 3 << 20, 1 << 19, 1 << 31, 1 << 63, .max, (1 << 20) + 1] as [UInt64])
    func strangeSizes(former: UInt64) throws {
        let plan = try DiskPlan(limitBytes: 100 << 30, formerSegmentBytes: former)
        let fresh = try DiskPlan(limitBytes: 100 << 30, formerSegmentBytes: nil)
        #expect(plan == fresh)
    }

    /// What the plan's files take, with what the file system adds.
    private func check(_ plan: DiskPlan, _ limit: UInt64) throws -> UInt64 {
        let used =
            UInt64(plan.segments) * UInt64(plan.segmentBytes + Self.overhead)
        #expect(used <= limit, "\(plan) takes \(used) of \(limit) bytes")
        #expect(plan.segments >= SegmentLedger.Settings.segmentsMin)
        return used
    }
}

@Suite("Instants and wall times")
struct DiskClockTests {
    private let clock = DiskClock(instant: Instant(nanoseconds: 5_000_000_000), wall: 1_000_000)

    @Test("an instant becomes the wall time it was, and comes back")
    func thereAndBack() {
        #expect(clock.wall(Instant(nanoseconds: 6_500_000_000)) == 1_001_500)
        #expect(clock.instant(1_001_500) == Instant(nanoseconds: 6_500_000_000))
        #expect(clock.wall(.zero) == 995_000)
        #expect(clock.second(Instant(nanoseconds: 6_500_000_000)) == 1_001)
        for wall in stride(from: Int64(-5_000_000), through: 5_000_000, by: 9_999) {
            #expect(clock.wall(clock.instant(wall)) == wall)
        }
    }

    @Test("what was long before the machine's start is before it, what is for ever stays so")
    func ends() {
        #expect(clock.instant(0) < .zero)
        #expect(clock.wall(.distantFuture) == .max)
        #expect(clock.instant(.max) == .distantFuture)
        #expect(clock.instant(.min) < .zero)
        #expect(clock.instant(.max - 1) == .distantFuture)
        let late = DiskClock(instant: .zero, wall: .max - 10)
        #expect(late.wall(Instant(nanoseconds: 1_000_000_000)) == .max)
        #expect(late.instant(.min) < .zero)
        #expect(clock.second(clock.instant(-5_000)) == 0)
        #expect(clock.second(.distantFuture) == .max)
    }
}
