import Ground
import Testing
import Tiers

@Suite("Dividing a disk limit into segments")
struct DiskPlanTests {
    private static let overhead = 8192

    private func plan(
        _ limit: UInt64, object: UInt64 = 64 << 20, former: UInt64? = nil
    ) throws(DiskPlan.TooSmall) -> DiskPlan {
        try DiskPlan(limitBytes: limit, objectBytesMax: object, formerSegmentBytes: former)
    }

    @Test("A limit that is too small is refused, and the error gives the minimum")
    func tooSmall() throws {
        for limit in [0, 1, DiskPlan.limitBytesMin - 1] {
            let refusal = #expect(throws: DiskPlan.TooSmall.self) { try plan(limit) }
            #expect(refusal?.neededBytes == DiskPlan.limitBytesMin)
        }
        let least = try plan(DiskPlan.limitBytesMin)
        #expect(least.segments == 4 && least.segmentBytes == 1 << 20)
    }

    @Test(
        "From the minimum to 100 TiB, all files stay within the limit and use most of it",
        arguments: [0, 64 << 20, 1 << 40] as [UInt64])
    func withinLimit(object: UInt64) throws {
        var dice = SplitMix64(seed: 1)
        var limit = DiskPlan.limitBytesMin
        while limit <= 100 << 40 {
            let plan = try plan(limit, object: object)
            let used = try check(plan, limit)
            #expect(plan.segmentBytes % (64 << 10) == 0 && plan.segmentBytes >= 1 << 20)
            #expect(plan.segmentBytes <= 1 << 30 && plan.segments <= 65_000)
            // At most one segment's space is lost, and up to 64 TiB all of it can be addressed.
            let isNearlyAll = limit - used < UInt64(2 * plan.segmentBytes) + 1 << 20
            #expect(isNearlyAll || limit > 60 << 40, "\(used) of \(limit) bytes")
            limit += limit / 50 + UInt64.random(in: 0..<1 << 20, using: &dice)
        }
    }

    @Test(
        "A segment holds the largest object with its head, or there are only some 22",
        arguments: [0, 1 << 20, 5_000_000, 64 << 20, 512 << 20] as [UInt64])
    func holdsTheLargest(object: UInt64) throws {
        var limit: UInt64 = 32 << 20
        while limit <= 1 << 40 {
            let plan = try plan(limit, object: object)
            let holdsIt = UInt64(plan.segmentBytes) >= object + 100_000
            #expect(plan.segments >= 21)
            #expect(holdsIt || plan.segments <= 32, "\(plan) of \(limit)")
            limit += limit / 7
        }
    }

    @Test(
        "Segment sizes for common limits with the default object limit",
        arguments: [
            (16 << 20, 1 << 20), (64 << 20, 46 << 16), (256 << 20, 186 << 16),
            (1 << 30, 744 << 16), (4 << 30, 1026 << 16), (10 << 30, 128 << 20),
            (1 << 40, 128 << 20),
        ] as [(UInt64, Int)])
    func usualSizes(limit: UInt64, segment: Int) throws {
        #expect(try plan(limit).segmentBytes == segment)
    }

    @Test("Segments keep their size when the limit changes, as long as their number is reasonable")
    func formerSize() throws {
        let first = try plan(10 << 30)
        #expect(first.segmentBytes == 128 << 20 || first.segments >= 64)
        for limit in [2 << 30, 10 << 30, 100 << 30, 1 << 40] as [UInt64] {
            let plan = try plan(limit, former: UInt64(first.segmentBytes))
            #expect(plan.segmentBytes == first.segmentBytes)
            _ = try check(plan, limit)
        }
        let few = try plan(256 << 20, former: 128 << 20)
        #expect(few.segmentBytes < 128 << 20)
        let many = try plan(1 << 40, former: 1 << 20)
        #expect(many.segmentBytes > 1 << 20)
    }

    @Test("Existing segments keep their size even if the largest object no longer fits")
    func formerIsSmall() throws {
        for former in [8 << 20, 16 << 20, 17 << 16] as [UInt64] {
            #expect(try plan(1_900_000_000, former: former).segmentBytes == Int(former))
        }
    }

    @Test(
        "A former size that no log can have is ignored",
        arguments: [0, 1, 1 << 19, 1 << 31, 1 << 63, .max, (1 << 20) + 1] as [UInt64])
    func strangeSizes(former: UInt64) throws {
        #expect(try plan(100 << 30, former: former) == plan(100 << 30))
    }

    /// The bytes that the plan's files use, with the file system's overhead.
    private func check(_ plan: DiskPlan, _ limit: UInt64) throws -> UInt64 {
        let used =
            UInt64(plan.segments) * UInt64(plan.segmentBytes + Self.overhead)
        #expect(used <= limit, "\(plan) takes \(used) of \(limit) bytes")
        #expect(plan.segments >= SegmentAllocator.Settings.segmentsMin)
        return used
    }
}

@Suite("Conversion between instants and wall times")
struct DiskClockTests {
    private let clock = DiskClock(instant: Instant(nanoseconds: 5_000_000_000), wall: 1_000_000)

    @Test("An instant converts to its wall time and back")
    func thereAndBack() {
        #expect(clock.wall(Instant(nanoseconds: 6_500_000_000)) == 1_001_500)
        #expect(clock.instant(1_001_500) == Instant(nanoseconds: 6_500_000_000))
        #expect(clock.wall(.zero) == 995_000)
        #expect(clock.second(Instant(nanoseconds: 6_500_000_000)) == 1_001)
        for wall in stride(from: Int64(-5_000_000), through: 5_000_000, by: 9_999) {
            #expect(clock.wall(clock.instant(wall)) == wall)
        }
    }

    @Test("Times before the boot are negative, and the distant future stays so")
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
