import ArgumentParser
import Foundation
import Ground

/// Kills a process that writes to a disk tier, again and again, and looks at what it left.
struct KillCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kill",
        abstract: "Kills a writer of a disk tier again and again; fails if what it left is wrong.",
        discussion: """
            The directory is kept from run to run, so that later runs recover what earlier ones \
            left. The exit status is 1 if anything was found that must not be there.
            """)

    @Argument(help: "A directory for the tier, missing or empty.")
    var directory: String

    @Option(help: "How often the writer is killed.")
    var runs = 200

    @Option(help: "What everything at random follows from; drawn if not given.")
    var seed: UInt64?

    @Option(help: .hidden)
    var child: UInt64?

    @Flag(help: .hidden)
    var verify = false

    @Option(help: .hidden)
    var number = 0

    func validate() throws {
        guard runs > 0 else { throw ValidationError("--runs: at least 1") }
    }

    func run() async throws {
        let world = KillConfiguration(directory: directory, run: number)
        if verify {
            await KillVerifier(world).run()
        } else if let child {
            await KillWriter(world, SplitMix64(seed: child)).run()
        } else {
            var random = SystemRandomNumberGenerator()
            try campaign(seed: seed ?? random.next())
        }
    }

    private func campaign(seed: UInt64) throws {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        guard names.isEmpty else { throw ValidationError("\(directory) is not empty") }
        var campaign = KillCampaign(directory: directory, seed: seed)
        print("seed \(seed), \(runs) runs in \(directory)")
        do throws(KillViolation) {
            for run in 0..<runs { try campaign.kill(run) }
        } catch {
            print(campaign.report)
            print("violation in run \(campaign.runs): \(error.message)")
            throw ExitCode(1)
        }
        print(campaign.report)
    }
}
