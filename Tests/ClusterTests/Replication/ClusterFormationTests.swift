import Cluster
import Ground
import Testing

@Suite("Forming a cluster")
struct ClusterFormationTests {
    private func id(_ number: UInt64) -> NodeID { LogStage.id(number) }

    private func newcomer(_ number: UInt64, for nominee: UInt64?) -> (NodeID, VoterSetView?) {
        (id(number), VoterSetView(configuration: nil, isCurrent: false, nominee: nominee.map(id)))
    }

    private func opens(
        _ formation: inout ClusterFormation, _ own: UInt64, _ others: (NodeID, VoterSetView?)...
    ) -> Bool {
        formation.evaluate(own: id(own), others: others.map { (node: $0.0, view: $0.1) })
    }

    @Test("Newcomers nominate the lowest visible id, which bootstraps if all nominate it")
    func unanimous() {
        var formation = ClusterFormation()
        formation.rule = .unanimous
        #expect(!opens(&formation, 1, newcomer(2, for: nil), newcomer(3, for: 1)))
        #expect(formation.nominee == id(1))
        #expect(!opens(&formation, 1, newcomer(2, for: 2), newcomer(3, for: 1)))
        #expect(!opens(&formation, 1, newcomer(2, for: 1), (id(3), nil)))
        #expect(opens(&formation, 1, newcomer(2, for: 1), newcomer(3, for: 1)))
        var higher = ClusterFormation()
        higher.rule = .unanimous
        #expect(!opens(&higher, 2, newcomer(1, for: 1)))
        #expect(higher.nominee == id(1))
    }

    @Test("While members may be elsewhere no node bootstraps")
    func never() {
        var formation = ClusterFormation()
        #expect(!opens(&formation, 1))
        #expect(!opens(&formation, 1, newcomer(2, for: 1)))
    }

    @Test("A node that knows a cluster is followed, whatever the rule")
    func known() {
        let member = VoterSetView(
            configuration: VoterConfiguration(VoterSet(foundedBy: id(9))), isCurrent: true)
        for rule in [ClusterFormation.Rule.unanimous, .majority(of: 3), .operatorOrdered] {
            var formation = ClusterFormation()
            formation.rule = rule
            #expect(!opens(&formation, 1, (id(9), member), newcomer(2, for: 1)), "\(rule)")
        }
    }

    @Test("With an expected size more than half have to nominate the node")
    func majority() {
        for (expected, votes) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
            var formation = ClusterFormation()
            formation.rule = .majority(of: expected)
            let others = (0..<votes).map { newcomer(UInt64($0) + 2, for: 1) }
            let views = others.map { (node: $0.0, view: $0.1) }
            #expect(formation.evaluate(own: id(1), others: views) == true, "\(expected)")
            let isEnoughWithout = formation.evaluate(own: id(1), others: Array(views.dropLast()))
            #expect(!isEnoughWithout || votes == 0, "\(expected)")
        }
    }

    @Test("A nominee that nominates itself is kept, and replaced when it gives way")
    func steadfast() {
        var formation = ClusterFormation()
        formation.rule = .majority(of: 5)
        #expect(!opens(&formation, 7, newcomer(4, for: 4)))
        #expect(formation.nominee == id(4))
        #expect(!opens(&formation, 7, newcomer(4, for: 4), newcomer(2, for: 2)))
        #expect(formation.nominee == id(4))
        #expect(!opens(&formation, 7, newcomer(4, for: 2), newcomer(2, for: 2)))
        #expect(formation.nominee == id(2))
        // A nominee that is gone is not kept.
        #expect(!opens(&formation, 7, newcomer(4, for: 4)))
        #expect(formation.nominee == id(4))
    }

    @Test("The operator's command suffices, and a set smaller than expected is not formed")
    func ordered() {
        var formation = ClusterFormation()
        formation.rule = .operatorOrdered
        #expect(opens(&formation, 5, newcomer(2, for: 2)))
        #expect(formation.isLargeEnough(VoterSet(foundedBy: id(5))))
        formation.rule = .majority(of: 3)
        let one = VoterSet(foundedBy: id(5))
        #expect(!formation.isLargeEnough(one))
        #expect(one.applying(by: .add(id(6))).map(formation.isLargeEnough) == true)
    }
}
