import Admin
import Ground
import HTTPRules
import Testing

@Suite("Rate limits of the admin port")
struct AdminRateLimiterTests {
    private static func digest(_ byte: UInt8) -> TokenDigest {
        TokenDigest([UInt8](repeating: byte, count: 32).span)
    }

    private static let access = AdminAccessPolicy(grants: [
        .init(.read, digest(1)), .init(.purge, digest(2)), .init(.admin, digest(3)),
    ])

    /// A limiter and its callers: a token given by its first byte, an address by its last.
    private struct World {
        var gate = AdminRateLimiter()
        var now = Instant(nanoseconds: 1_000_000_000)

        mutating func ask(
            _ proof: AdminCaller.Credential, from address: IPAddress = .v4(1),
            _ name: AdminOperation.ID = .getStatus
        ) -> AdminRateLimiter.Admission {
            let caller = AdminCaller(address: address, proof: proof, authority: [])
            let operation = AdminOperation.operation(name)
            let outcome = access.authorize(caller, for: operation.role)
            return gate.admit(outcome, of: caller, to: operation, at: now)
        }

        mutating func ask(
            with byte: UInt8, from address: IPAddress = .v4(1),
            _ name: AdminOperation.ID = .getStatus
        ) -> AdminRateLimiter.Admission {
            ask(.token(digest(byte)), from: address, name)
        }
    }

    @Test("The eleventh wrong token in a row is delayed; one every 6 s is refused at once")
    func wrongTokens() {
        var world = World()
        for _ in 0..<10 {
            #expect(world.ask(with: 9) == .refused(.tokenUnknown, delay: .zero))
        }
        let late = AdminRateLimiter.Admission.refused(
            .attemptRateExceeded(retryAfterSeconds: 7), delay: .seconds(6))
        #expect(world.ask(with: 9) == late)
        // The delay does not grow with the number of attempts.
        for _ in 0..<1_000 { #expect(world.ask(.malformed) == late) }
        world.now = world.now + .seconds(6)
        #expect(world.ask(.malformed) == .refused(.tokenMalformed, delay: .zero))
        #expect(world.ask(with: 9) == late)
        #expect(world.ask(with: 9, from: .v4(2)) == .refused(.tokenUnknown, delay: .zero))
    }

    @Test("A valid token is accepted, however many wrong ones came from its address")
    func rightTokens() {
        var world = World()
        for _ in 0..<1_000 { _ = world.ask(with: 9) }
        #expect(world.ask(with: 1) == .admitted(.read))
        #expect(world.ask(with: 3, .drain) == .admitted(.admin))
        #expect(
            world.ask(with: 1, .drain) == .refused(.insufficientRole(.read, .admin), delay: .zero))
        #expect(world.ask(.certificate, .drain) == .admitted(.admin))
        #expect(world.ask(.none) == .refused(.tokenMissing, delay: .zero))
    }

    @Test(
        "A token below the admin role has a rate limit on costly reports, without effect on others")
    func reports() {
        var world = World()
        var given = 0
        while world.ask(with: 1, .getEntryBody) == .admitted(.read), given < 1_000 { given += 1 }
        #expect(given == 20)
        #expect(
            world.ask(with: 1, .getEntryBody)
                == .refused(.reportRateExceeded(retryAfterSeconds: 1), delay: .zero))
        // Cheap ones recover sooner, and public ones are not limited.
        world.now = world.now + .milliseconds(10)
        #expect(world.ask(with: 1, .getStatus) == .admitted(.read))
        #expect(world.ask(with: 1, .getHealth) == .admitted(.read))
        #expect(world.ask(with: 2, .getEntryBody) == .admitted(.purge))
        for _ in 0..<1_000 {
            #expect(world.ask(with: 3, .getSupportSnapshot) == .admitted(.admin))
        }
        world.now = world.now + .milliseconds(250)
        #expect(world.ask(with: 1, .getEntryBody) == .admitted(.read))
    }
}

@Suite("Token buckets")
struct RateLimiterTests {
    @Test("A bucket never exceeds its capacity, and a wait takes nothing")
    func bucket() {
        var limiter = RateLimiter(.init(burst: 3, refill: .seconds(2)))
        var now = Instant(nanoseconds: 0)
        #expect(limiter.take(3, from: 1, at: now) == nil)
        for _ in 0..<5 { #expect(limiter.take(from: 1, at: now) == .seconds(2)) }
        #expect(limiter.take(2, from: 1, at: now) == .seconds(4))
        now = now + .seconds(1_000)
        #expect(limiter.take(2, from: 1, at: now) == nil)
        #expect(limiter.take(2, from: 1, at: now) == .seconds(2))
        #expect(limiter.take(from: 1, at: now) == nil)
    }

    @Test("The table is bounded and keeps the heaviest users longest")
    func crowd() {
        var limiter = RateLimiter(.init(burst: 10, refill: .seconds(6)))
        let now = Instant(nanoseconds: 0)
        #expect(limiter.take(10, from: 7, at: now) == nil)
        for number in 100..<5_000 { #expect(limiter.take(from: UInt128(number), at: now) == nil) }
        #expect(limiter.take(from: 7, at: now) == .seconds(6))
    }
}
