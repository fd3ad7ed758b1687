import Cluster
import Ground
import Simulation
import Testing
import Trials

@Suite("Membership stories")
struct MembershipStoryTests {
    /// A cluster of `count` nodes that has converged.
    private func cluster(_ count: Int, seed: UInt64, loss: Double = 0) throws
        -> MembershipSimulation
    {
        var conditions = NetworkConditions()
        conditions.loss = loss
        var world = MembershipSimulation(seed: seed, conditions: conditions)
        for host in 0..<count {
            _ = world.addHost()
            if host < 3 { world.seedHosts.append(host) }
            _ = world.start(host: host, epoch: 5)
        }
        let time = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: .seconds(20))
        #expect(time != nil, "\(world.disagreement ?? world.disconnectedPair ?? "")")
        try world.run(for: .seconds(30))
        return world
    }

    @Test("Five idle nodes send less than 1 KB a second each, and open no connections")
    func rest() throws {
        var world = try cluster(5, seed: 1)
        let (bytes, links) = (world.bytesSent, world.network.linkCount)
        try world.run(for: .seconds(300))
        #expect((world.bytesSent - bytes) / 5 / 300 < 1_024)
        #expect(world.bytesSent > bytes)
        #expect(world.network.linkCount == links)
        #expect(world.isAgreed)
    }

    @Test(
        "A 2|3 partition beyond every suspicion makes two clusters, which merge without help",
        arguments: [(false, 11), (true, 12), (false, 13), (true, 14)] as [(Bool, UInt64)])
    func split(isOneWay: Bool, seed: UInt64) throws {
        var world = try cluster(5, seed: seed)
        world.cut([0, 1], isOneWay: isOneWay)
        try world.run(for: .seconds(180))
        for process in 0..<5 {
            let mates = process < 2 ? Set(0..<2) : Set(2..<5)
            let live = world.processes[process].membership.records.filter { $0.state.isLive }
            let expected = mates.map { world.processes[$0].id }
            #expect(Set(live.map(\.member.id)) == Set(expected))
        }
        world.heal()
        let time = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: .seconds(80))
        #expect(time != nil, "\(world.disagreement ?? world.disconnectedPair ?? "")")
        try world.run(for: .seconds(60))
        #expect(world.isAgreed && world.disconnectedPair == nil)
        // Neither side made the other declare its own members dead.
        #expect(world.deathReports.allSatisfy { ($0.of < 2) != ($0.by < 2) })
    }

    @Test("Nodes that dial each other at once over bad links keep one connection")
    func crossedDials() throws {
        for seed in Trials.seeds(100...199) {
            var conditions = NetworkConditions()
            conditions.loss = 0.3
            conditions.delay = .milliseconds(100)
            conditions.jitter = .milliseconds(200)
            var world = MembershipSimulation(seed: seed, conditions: conditions)
            for host in 0..<3 {
                world.seedHosts.append(world.addHost())
                _ = world.start(host: host, epoch: 5)
            }
            try world.run(for: .seconds(60))
            #expect(world.unwantedDisconnects == 0, "seed \(seed)")
        }
    }

    @Test("A worn-out connection is replaced without a gap, whichever end reports it")
    func wornConnection() throws {
        for end in 0...1 {
            var world = try cluster(4, seed: 25)
            let worn = try #require(world.network.openLinks.first)
            let (pair, links) = (world.network.processes(of: worn), world.network.linkCount)
            try world.wearOut(worn, end: end)
            for _ in 0..<300 {
                try world.run(for: .milliseconds(100))
                #expect(world.areConnected(pair[0], pair[1]))
            }
            #expect(!world.network.openLinks.contains(worn))
            #expect(world.network.linkCount == links + 1 && world.disconnectedPair == nil)
            #expect(world.deathReports.isEmpty && world.unwantedDisconnects == 0)
        }
    }

    @Test("Two members that cannot reach each other stay members through the others")
    func pairwise() throws {
        var world = try cluster(5, seed: 21)
        world.cutPair(0, 1)
        for _ in 0..<180 {
            try world.run(for: .seconds(1))
            for process in 0..<5 {
                let live = world.processes[process].membership.liveCount
                #expect(live == 5)
            }
        }
        world.heal()
        let time = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: .seconds(30))
        #expect(time != nil)
    }

    @Test(
        "A crashed member is known dead by all, and no other is",
        arguments: [(5, false, 9), (5, true, 12), (30, false, 11), (30, true, 16)]
            .filter { $0.0 == 5 || !Trials.isReduced })
    func crash(count: Int, isPowerLoss: Bool, secondsMax: Int64) throws {
        var world = try cluster(count, seed: UInt64(count))
        let victim = count - 1
        if isPowerLoss { world.powerOff(victim) } else { world.kill(victim) }
        let time = try world.run(
            until: { $0.isKnownGone(victim) }, limit: .seconds(secondsMax))
        #expect(time != nil)
        try world.run(for: .seconds(60))
        #expect(world.falsePositives == 0)
        #expect(world.isAgreed)
        let buried = world.processes[0].membership[world.processes[victim].id]
        #expect(buried?.state == .dead)
    }

    @Test("A leave is known to all within a second, a join within two")
    func leaveAndJoin() throws {
        var world = try cluster(8, seed: 31)
        try world.leave(7)
        let left = try world.run(until: { $0.isKnownGone(7) }, limit: .seconds(1))
        #expect(left != nil)
        #expect(world.processes[7].state == .ended)
        try world.run(for: .seconds(5))
        let again = world.start(host: 7, id: world.processes[7].id, epoch: 6)
        let joined = try world.run(until: { $0.isKnownAlive(again) }, limit: .seconds(2))
        #expect(joined != nil)
        let buried = world.processes[0].membership[world.processes[7].id]
        #expect(buried?.incarnation.epoch == 6)
    }

    @Test("A pause shorter than the least suspicion has no effect; a long one is recovered from")
    func pause() throws {
        var world = try cluster(5, seed: 41)
        world.pause(2)
        try world.run(for: .seconds(3))
        try world.resume(2)
        try world.run(for: .seconds(20))
        #expect(world.deathReports.isEmpty)
        #expect(world.isAgreed)
        world.pause(2)
        try world.run(for: .seconds(120))
        #expect(Set(world.deathReports.map(\.of)) == [2])
        try world.resume(2)
        let time = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: .seconds(20))
        #expect(time != nil)
        #expect(Set(world.deathReports.map(\.of)) == [2])
    }

    @Test(
        "Of two live processes with one id the later one refuses, whatever copy it started from",
        arguments: [4, 5, 6] as [UInt64])
    func twin(epoch: UInt64) throws {
        for seed in 50..<60 as Range<UInt64> {
            var world = try cluster(4, seed: seed)
            let host = world.addHost()
            let copy = world.start(host: host, id: world.processes[3].id, epoch: epoch)
            try world.run(for: .seconds(30))
            #expect(world.processes[copy].state == .refusedToServe)
            #expect(world.running == [0, 1, 2, 3])
            #expect(world.isAgreed)
            #expect(world.processes[0].membership[world.processes[3].id]?.state == .alive)
        }
    }

    @Test("A node restored from an older copy of its directory refuses to serve")
    func olderCopy() throws {
        var world = try cluster(4, seed: 71)
        world.kill(3)
        try world.run(for: .seconds(2))
        let restored = world.start(host: 3, id: world.processes[3].id, epoch: 2)
        let time = try world.run(
            until: { $0.processes[restored].state == .refusedToServe }, limit: .seconds(30))
        #expect(time != nil)
    }

    @Test("Nodes that start before the name server find each other when it answers")
    func lateResolver() throws {
        var world = MembershipSimulation(seed: 81)
        world.isResolverDown = true
        for host in 0..<4 {
            world.seedHosts.append(world.addHost())
            _ = world.start(host: host)
        }
        try world.run(for: .seconds(60))
        #expect(world.network.linkCount == 0)
        world.isResolverDown = false
        let time = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: .seconds(15))
        #expect(time != nil)
    }

    @Test("With 5 % packet loss for ten minutes no live node is declared dead")
    func loss() throws {
        var world = try cluster(10, seed: 91, loss: 0.05)
        try world.run(for: .seconds(600))
        #expect(world.falsePositives == 0)
        #expect(world.deathReports.isEmpty)
    }
}
