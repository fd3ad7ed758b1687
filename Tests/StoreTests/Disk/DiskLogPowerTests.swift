import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("The disk log after a kill or a power failure", .disabled(if: Trials.isReduced))
struct DiskLogPowerTests {
    /// A log after a restart, and the script to run on it.
    private struct Scene {
        let base: LogPlay
        let script: LogScript
        /// The number of operations of the script without failures.
        let operations: Int
        let seed: UInt64

        init(seed: UInt64, steps: Int) throws {
            self.seed = seed
            var dice = SplitMix64(seed: seed)
            let size = LogScript.Size(
                steps: steps, names: 24, bytesUsual: 60_000, bytesMax: 400_000)
            let rig = try LogRig(segments: 5, seed: seed)
            var play = LogPlay(rig, names: size.names)
            for step in LogScript(size, using: &dice).steps { try play.perform(step) }
            try play.perform(.restart)
            try rig.stop()
            try #require(play.wrongs == [], "seed \(seed)")
            base = play
            script = LogScript(size, using: &dice)
            var rehearsal = LogPlay(play, on: LogRig(rig))
            for step in script.steps { try rehearsal.perform(step) }
            operations = rehearsal.rig.volume.operations
        }

        /// Plays the script while every operation from number `first` on fails.
        func play(failingFrom first: Int, goesOn: Bool) throws -> LogPlay {
            var play = LogPlay(base, on: LogRig(base.rig))
            play.rig.volume.edit { $0.operations = first..<Int.max }
            for step in script.steps {
                do { try play.perform(step) } catch {
                    guard error is DiskFile.Failure else { throw error }
                    guard goesOn && play.rig.isRunning else { break }
                }
            }
            return play
        }
    }

    @Test(
        "After a power failure at any point no wrong or deleted response is found",
        arguments: Trials.seeds(1...1, long: 40))
    func powerLoss(seed: UInt64) throws {
        let scene = try Scene(seed: seed, steps: 150)
        for operation in 0...scene.operations {
            var play = try scene.play(failingFrom: operation, goesOn: true)
            if play.rig.isRunning { try play.checkCurrent() }
            play.rig.losePower()
            if operation % 2 == 0 {
                // A second failure while the log is opened.
                play.rig.volume.edit { $0.operations = operation / 2 % 11..<Int.max }
                _ = try? play.rig.start()
                play.rig.losePower()
            }
            try goOn(&play)
            try #require(play.wrongs == [], "seed \(seed), operation \(operation)")
        }
    }

    @Test(
        "After a kill at any point everything stored and not deleted is found",
        arguments: Trials.seeds(1...1, long: 40))
    func kill(seed: UInt64) throws {
        let scene = try Scene(seed: seed + 100, steps: 150)
        for operation in 0...scene.operations {
            var play = try scene.play(failingFrom: operation, goesOn: false)
            let before = play.rig.isRunning ? try play.found() : [:]
            play.rig.kill()
            try play.rig.start()
            let after = try play.found()
            for name in before.keys where after[name]?.body != before[name]?.body {
                // The last step may have stored a newer one.
                let isNewer = play.possible[name]?.last?.body == after[name]?.body
                play.expect(isNewer, "\(name) is gone")
            }
            try goOn(&play)
            try #require(play.wrongs == [], "seed \(seed), operation \(operation)")
        }
    }

    /// Opens the log, checks its contents and stores more; also after the next kill.
    private func goOn(_ play: inout LogPlay) throws {
        try play.rig.start()
        try play.checkPossible()
        try play.perform(.delete([4, 5, 6]))
        for version in 1_000..<1_004 {
            let response = Answer(version % 4, version: version, bytes: 200_000)
            try play.perform(.store(response))
            let found = try play.rig.find(response.number)
            play.expect(found?.body == response.body, "\(version) is not there")
        }
        play.rig.kill()
        try play.rig.start()
        try play.checkPossible()
        let last = try play.rig.find(3)
        play.expect(last != nil, "what was stored last is gone")
    }
}
