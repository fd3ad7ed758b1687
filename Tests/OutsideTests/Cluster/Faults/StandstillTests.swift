import Harness
import Testing

extension Outside {
    @Suite("A node that is suspended")
    struct StandstillTests {
        @Test("It is dropped with one log line, the other nodes go on serving, and it returns")
        func stopped() throws {
            let stage = try ClusterStage(5)
            stage.origin.serveNumberedImages()
            let still = try #require(ClusterStage.members(of: stage.nodes[4]).first)
            let others = Array(stage.nodes.prefix(4))
            let load = SteadyLoad(
                others, connections: 2, pause: 0.02, origin: stage.origin,
                SteadyLoad.mixed(stored: 200, LockedBox(0)))
            let isServing = { (before: [SteadyLoad.Tally]) in
                load.waitForAnswers(50, of: SteadyLoad.kinds, at: Array(0..<4), since: before)
            }
            #expect(isServing(load.now))
            let before = load.now
            stage.nodes[4].pause()
            defer { stage.nodes[4].resume() }
            #expect(isServing(before))
            for node in others { #expect(try stage.believes(node, still.id, "dead")) }
            try stage.settle(others)
            #expect(isServing(load.now))
            for node in others {
                #expect(node.lineCount(containing: "member is dead", still.id) == 1)
            }
            stage.nodes[4].resume()
            try stage.settle(stage.nodes)
            #expect(isServing(load.now))
            #expect(load.stop().flatMap(\.failures) == [])
            for node in others { #expect(node.lineCount(containing: "member is dead") == 1) }
        }
    }
}
