import Ground
import Origin
import Testing

@Suite("Racing connection attempts (RFC 8305)")
struct HappyEyeballsTests {
    private let v4 = (1...3).map { IPAddress.v4($0) }
    private let v6 = (1...3).map { IPAddress.v6(UInt128($0)) }

    private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

    @Test("Address families alternate, starting with the first address's family")
    func interleaved() {
        #expect(
            HappyEyeballs.interleaved([v6[0], v6[1], v4[0]]) == [v6[0], v4[0], v6[1]])
        #expect(
            HappyEyeballs.interleaved([v4[0], v4[1], v4[2], v6[0]])
                == [v4[0], v6[0], v4[1], v4[2]])
        #expect(HappyEyeballs.interleaved([]) == [])
    }

    @Test("The next attempt starts when the last has failed, or after a delay")
    func order() {
        var race = HappyEyeballs(v4.map { .address($0) })
        #expect(race.start(now: at(0)) == .connect(.address(v4[0]), attempt: 1, cancelling: nil))
        #expect(race.deadline == at(250))
        #expect(
            race.attemptFailed(1, reason: "refused", now: at(10))
                == .connect(.address(v4[1]), attempt: 2, cancelling: nil))
        #expect(race.ticked(now: at(250)) == .wait)
        #expect(race.ticked(now: at(260)) == .connect(.address(v4[2]), attempt: 3, cancelling: nil))
        #expect(race.deadline == .distantFuture)
        #expect(race.attemptFailed(3, reason: "reset", now: at(300)) == .wait)
        #expect(
            race.attemptFailed(2, reason: "unreachable", now: at(400))
                == .allFailed(reason: "unreachable"))
    }

    @Test("An attempt that is not running cannot fail")
    func unknownAttempt() {
        var race = HappyEyeballs([.name])
        #expect(race.start(now: at(0)) == .connect(.name, attempt: 1, cancelling: nil))
        #expect(race.attemptFailed(2, reason: "?", now: at(0)) == .wait)
        #expect(
            race.attemptFailed(1, reason: "refused", now: at(0)) == .allFailed(reason: "refused"))
        #expect(race.attemptFailed(1, reason: "refused", now: at(0)) == .wait)
    }

    @Test("Without an address the race is lost")
    func empty() {
        var race = HappyEyeballs([])
        #expect(race.start(now: at(0)) == .allFailed(reason: "there is no address"))
    }
}
