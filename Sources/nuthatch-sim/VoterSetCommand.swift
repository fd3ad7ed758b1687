import ArgumentParser
import Simulation

/// `nuthatch-sim count`: explores all interleavings of a small cluster that changes its voter set.
struct VoterSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "count",
        abstract: "Explores every run of a small cluster that adds and forgets voters.",
        discussion: """
            Exits with status 1 if a generation can have two sets, or if a node can be proven \
            current without a purge that was durable a fence earlier; then prints a shortest run. \
            With --mistakes, one deliberate mistake at a time is made, and it is a failure not to \
            find it.
            """)

    @Option(help: "Nodes, 2 to 4.")
    var nodes = 3

    @Option(help: "Successive changes of the set, at most 3.")
    var changes = 2

    @Option(help: "Crashes that lose unsynced data, at most 2.")
    var crashes = 1

    @Option(help: "Ballots that are started, at most 4.")
    var ballots = 2

    @Option(help: "Nodes that start ballots: those with the lowest ids.")
    var owners = 2

    @Option(help: "Replies that are delivered late, at most 2.")
    var late = 0

    @Flag(help: "Repeats votes for an unsettled set at any time.")
    var repeats = false

    @Option(help: "Members of the first set, if not each number once.")
    var first: Int?

    @Option(help: "Number of states after which to give up.")
    var statesMax = 100_000_000

    @Flag(help: "Leaves out the purge: checks only agreement on sets.")
    var agreement = false

    @Flag(help: "Finds each mistake within bounds of its own.")
    var mistakes = false

    func validate() throws {
        guard 2...4 ~= nodes else { throw ValidationError("--nodes must be 2 to 4, not \(nodes)") }
        guard 0...3 ~= changes, 0...2 ~= crashes, 0...4 ~= ballots, 0...2 ~= late else {
            throw ValidationError("--changes, --crashes, --ballots or --late are out of range")
        }
        guard 0...nodes ~= owners, 1...nodes ~= first ?? 1, statesMax > 0 else {
            throw ValidationError("--owners and --first must be at most --nodes")
        }
    }

    func run() throws {
        if mistakes { return try findMistakes() }
        var bounds = VoterModelBounds(nodes: nodes)
        bounds.changes = changes
        bounds.crashes = crashes
        bounds.ballots = ballots
        bounds.proposers = owners
        bounds.delayedResponses = late
        bounds.hasRepeatedVotes = repeats
        bounds.statesMax = statesMax
        if let first { bounds.firstSets = first...first }
        print(
            "\(nodes) nodes, \(changes) changes, \(crashes) crashes, \(ballots) ballots of "
                + "\(owners) owners, \(late) late answers")
        var isSound = true
        for hasPurge in agreement ? [false] : [false, true] {
            bounds.hasPurge = hasPurge
            let name = hasPurge ? "promise, one purge" : "agreement"
            let outcome = search(name, bounds)
            isSound = isSound && outcome.isExhaustive && outcome.violated == nil
        }
        if !isSound { throw ExitCode.failure }
    }

    private func findMistakes() throws {
        var isFound = true
        for flaw in VoterModelMutation.allCases {
            isFound = search("\(flaw)", flaw.bounds, flaw).violated != nil && isFound
        }
        if !isFound { throw ExitCode.failure }
    }

    /// Prints the outcome of a search.
    private func search(
        _ name: String, _ bounds: VoterModelBounds, _ flaw: VoterModelMutation? = nil
    ) -> VoterModelSearch.SearchResult {
        let start = ContinuousClock.now
        var search = VoterModelSearch(bounds, flaw: flaw)
        let outcome = search.run()
        let seconds = (ContinuousClock.now - start).components.seconds
        print(
            "\(name): \(outcome.states) states, \(outcome.transitions) transitions, "
                + "depth \(outcome.depth), \(outcome.nodeStates) states of a node, "
                + "violations \(outcome.violated == nil ? 0 : 1), \(seconds) s"
                + (outcome.isExhaustive ? "" : ", not whole"))
        if let law = outcome.violated {
            print("  \(law) is broken:")
            for line in outcome.trace { print("    \(line)") }
        }
        return outcome
    }
}
