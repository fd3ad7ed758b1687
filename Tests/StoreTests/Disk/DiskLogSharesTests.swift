import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("Disk shares of sites", .disabled(if: Trials.isReduced))
struct DiskLogSharesTests {
    private let rig: LogRig

    init() throws {
        rig = try LogRig(segments: 9, seed: 5)
    }

    private func shares(_ percents: [(host: String, percent: Int?)], others: Int? = nil)
        -> DiskShareLimits
    {
        var shares = DiskShareLimits()
        for (host, percent) in percents { shares.setHostLimit(Array(host.utf8), percent: percent) }
        shares.setDefaultLimit(percent: others)
        return shares
    }

    /// Stores a response of 100,000 bytes for a host.
    @discardableResult
    private func store(
        _ number: Int, host: String, version: Int = 1, bytes: Int = 100_000
    ) throws -> DiskLog.StoreOutcome {
        let response = Answer(number, version: version, bytes: bytes)
        rig.now += 1000
        let log = try rig.log()
        var record = response.record(version: log.view.version, now: rig.now)
        record.key = Array("//\(host)/\(number)".utf8)
        return try log.store(record, body: response.pieces, now: rig.now)
    }

    private func isThere(_ number: Int) throws -> Bool {
        try rig.log().view.shards.find(Answer.name(number).digest) != nil
    }

    private func used(_ host: String) throws -> Int {
        let bytes = Array(host.utf8)
        let number = DiskShareID.number(ofHost: bytes.span)
        return try rig.log().view.shards.bytes(of: .host(number), in: DiskShareLimits())
    }

    @Test("A site's records stay within its share, and other sites keep theirs")
    func limitHolds() throws {
        try rig.log().setShareLimits(shares([("a", 25), ("b", nil)]))
        for number in 0..<10 { try store(number, host: "b") }
        for number in 100..<160 {
            #expect(try store(number, host: "a") == .written)
            #expect(try used("a") <= 2 << 20)
        }
        #expect(try used("a") > 3 << 19)
        #expect(try (0..<10).allSatisfy(isThere))
        #expect(try isThere(159))
        #expect(try !isThere(100))
    }

    @Test("Without a share a site may use the whole disk")
    func noLimit() throws {
        for number in 0..<60 { try store(number, host: "a") }
        #expect(try used("a") > 4 << 20)
    }

    @Test("Hosts without a site of their own use one share together")
    func others() throws {
        try rig.log().setShareLimits(shares([("a", nil)], others: 10))
        for number in 0..<30 { try store(number, host: "host\(number)") }
        try store(100, host: "a")
        let left = try (0..<30).count(where: isThere)
        #expect((6...8).contains(left))
        #expect(try isThere(100))
    }

    @Test("A record larger than the share is not stored and displaces nothing")
    func tooLarge() throws {
        try rig.log().setShareLimits(shares([("a", 5)]))
        try store(1, host: "a")
        #expect(try store(2, host: "a", bytes: 500_000) == .shareExceeded)
        #expect(try isThere(1))
    }

    @Test("A record that replaces its older version displaces no other")
    func replaced() throws {
        try rig.log().setShareLimits(shares([("a", 25)]))
        for number in 0..<20 { try store(number, host: "a") }
        let before = try (0..<20).filter(isThere)
        try store(try #require(before.last), host: "a")
        #expect(try (0..<20).filter(isThere) == before)
    }

    @Test("A kill does not bring back a response that was evicted before a newer version")
    func givenUp() throws {
        try rig.log().setShareLimits(shares([("a", 25)]))
        for number in 0..<24 { try store(number, host: "a") }
        // A returning entry opens the main queue's segment, which is older than the small queue's
        // next ones.
        let back = try (0..<24).first { try !isThere($0) }
        try store(try #require(back), host: "a")
        for number in 100..<115 { try store(number, host: "a") }
        var next = 200
        while try isThere(114), next < 230 {
            for number in Array(0..<114) + Array(200..<next) { try rig.touch(number) }
            try store(next, host: "a")
            next += 1
        }
        #expect(try !isThere(114))
        try store(114, host: "a", version: 2)
        #expect(rig.figures[.reclaims] == 0, "the first record is still there")
        rig.kill()
        let found = try rig.start().view.read(Answer.name(114), key: Array("//a/114".utf8))
        #expect(found?.record.head == Answer(114, version: 2, bytes: 0).head)
    }

    @Test("A site's usage is known after a restart and after a kill")
    func restart() throws {
        try rig.log().setShareLimits(shares([("a", 25)]))
        for number in 0..<30 { try store(number, host: "a") }
        let before = try used("a")
        try rig.restart()
        #expect(try used("a") == before)
        rig.kill()
        try rig.start()
        #expect(try used("a") >= before)
        try rig.log().setShareLimits(shares([("a", 25)]))
        try store(200, host: "a")
        #expect(try used("a") <= 2 << 20)
    }
}
