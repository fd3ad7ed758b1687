import Admin
import Testing

@Suite("Conditions of a cluster")
struct ClusterFactsTests {
    private static let (own, other) = (String(repeating: "1", count: 32), "22")

    /// A healthy member.
    private static func member(
        _ node: String, _ name: String, _ change: (inout MemberDocument) -> Void = { _ in }
    ) -> MemberDocument {
        var row = MemberDocument()
        row.node = node
        row.name = name
        row.version = "1.1"
        row.address = "\(name):8082"
        row.state = "alive"
        (row.isVoter, row.isConnected) = (true, true)
        row.isSelf = node == own
        row.summary = MemberDocument.Summary()
        change(&row)
        return row
    }

    /// The facts of a cluster of two, after a change of the other member.
    private func facts(_ change: (inout MemberDocument) -> Void = { _ in }) -> ClusterFacts {
        var facts = ClusterFacts()
        facts.members = [
            Self.member(Self.own, "node-1"), Self.member(Self.other, "node-2", change),
        ]
        return facts
    }

    private func check(
        _ facts: ClusterFacts, _ name: Condition.Name, _ subject: String, _ words: String...,
        severity: Condition.Severity = .warning, at location: SourceLocation = #_sourceLocation
    ) {
        let conditions = facts.conditions
        #expect(conditions.map(\.name) == [name.rawValue], sourceLocation: location)
        guard let condition = conditions.first else { return }
        #expect(condition.severity == severity.rawValue, sourceLocation: location)
        #expect(condition.subject == subject, sourceLocation: location)
        for word in words {
            #expect(
                condition.summary.contains(word), "\(condition.summary)", sourceLocation: location)
        }
        #expect(!condition.advice.isEmpty, sourceLocation: location)
    }

    @Test("A healthy cluster, and a node without one, have none")
    func healthy() {
        #expect(ClusterFacts().conditions == [])
        #expect(facts().conditions == [])
        // A member that has left is not missing.
        let left = facts {
            ($0.state, $0.isConnected, $0.isVoter, $0.summary) = ("left", false, false, nil)
        }
        #expect(left.conditions == [])
    }

    @Test("A member that does not respond is missing, by name and address")
    func missing() {
        for (state, words) in [("suspected", "does not respond"), ("dead", "is dead")] {
            let facts = facts { ($0.state, $0.summary) = (state, nil) }
            check(facts, .memberMissing, "node-2", "node-2 (node-2:8082)", words)
        }
        let unmet = facts { row in
            row = MemberDocument()
            (row.node, row.isVoter) = (Self.other, true)
        }
        check(unmet, .memberMissing, Self.other, "22 is a voter")
        // An unknown node that is not a voter is nobody's loss.
        #expect(facts { ($0.state, $0.isVoter) = ("unknown", false) }.conditions == [])
    }

    @Test("A live member without a connection is unreachable after a while")
    func unreachable() {
        var facts = facts { $0.isConnected = false }
        facts.unconnectedMilliseconds = [Self.other: 14_999]
        #expect(facts.conditions == [])
        facts.unconnectedMilliseconds = [Self.other: 25_900]
        check(facts, .memberUnreachable, "node-2", "node-2", "25 s")
    }

    @Test("A node that cannot be a peer is named by its address")
    func rejected() {
        var facts = facts()
        facts.rejectedPeers = [
            .init(address: "10.0.0.3:8082", summary: "10.0.0.3:8082 has another cluster secret.")
        ]
        check(facts, .peerRejected, "10.0.0.3:8082", "has another cluster secret.")
    }

    @Test("A setting that differs is named with its values, and its members together")
    func settings() {
        var facts = facts()
        facts.members.append(Self.member("33", "node-3"))
        facts.settingDifferences = [
            .init(setting: "fence", own: "10s", node: Self.other, theirs: "20s"),
            .init(setting: "fence", own: "10s", node: "33", theirs: "off"),
        ]
        check(
            facts, .settingsDiffer, "fence",
            "fence is 10s on this node, and 20s on node-2, off on node-3.")
        facts.settingDifferences = [
            .init(setting: "sites", own: "", node: Self.other, theirs: "")
        ]
        check(facts, .settingsDiffer, "sites", "The settings of sites are not those of node-2.")
    }

    @Test("Another version is named, unless the member has not reported lately")
    func versions() {
        check(
            facts { $0.version = "1.2" }, .versionDiffers, "",
            "This node runs 1.1; node-2 runs 1.2.")
        #expect(facts { $0.version = "" }.conditions == [])
        #expect(facts { ($0.version, $0.summary) = ("1.2", nil) }.conditions == [])
    }

    @Test("A member's critical condition is this node's to tell, its warning is not")
    func failing() {
        func state(_ state: NodeState) -> ClusterFacts {
            facts {
                $0.summary?.state = state.rawValue
                $0.summary?.condition = "The disk is off"
            }
        }
        check(
            state(.critical), .memberFailing, "node-2", "node-2", "The disk is off",
            severity: .critical)
        #expect(state(.warning).conditions == [])
    }
}
