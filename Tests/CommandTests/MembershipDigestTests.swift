import Foundation
import Ground
import Harness
import Simulation
import Testing

@Suite("nuthatch-sim membership")
struct MembershipDigestTests {
    @Test(
        "A seed gives the same run in another process",
        arguments: [1, 2, 3, 72, 527, 575, 608, 614, 907, 940] as [UInt64])
    func elsewhere(seed: UInt64) throws {
        var play = MembershipScenario(seed: seed)
        let digest = hexadecimal(try play.run().digest)
        let outcome = try Program.run(
            NodeProcess.built("nuthatch-sim"), ["membership", "--seed", String(seed), "--digest"])
        #expect(String(decoding: outcome.output, as: UTF8.self) == digest + "\n")
    }
}
