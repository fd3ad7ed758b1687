import Harness
import Testing
import Trials

extension Outside {
    @Suite(
        "Purge guarantees under every fault, seen by clients",
        .enabled(if: NetworkNamespace.isAvailable, "namespaces need root, iproute2 and nftables"))
    struct BlackBoxTests {
        @Test("No read is older than a receipt of all nodes, or than a bound that has passed")
        func guarantees() throws {
            let seed = UInt64.random(in: 0..<1_000_000)
            let box = try BlackBox(nodes: 5, seed: seed)
            let outcome = try box.play(seconds: Trials.isCampaign ? 300 : 20)
            print("black box, seed \(seed): \(outcome)")
            #expect(outcome.violations == [], "seed \(seed): \(outcome)")
            // A run without activity is no success.
            #expect(outcome.reads > 500 && outcome.purges > 20, "seed \(seed): \(outcome)")
            #expect(
                outcome.afterReceipts > 100 && outcome.afterBounds > 0,
                "seed \(seed): \(outcome)")
            #expect(outcome.faults.count == BlackBox.Fault.allCases.count, "\(outcome)")
        }
    }
}
