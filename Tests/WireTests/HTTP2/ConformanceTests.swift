import Testing
import Wire

@Suite struct HTTP2ConformanceTests {
    @Test("The server conforms to the RFCs", arguments: ConformanceCase.all)
    func conforms(_ item: ConformanceCase) {
        for piece in [Int.max, 1] { check(item, piece: piece) }
    }

    @Test("There are as many cases as in the public suites, without duplicates")
    func count() {
        #expect(ConformanceCase.all.count >= 146)
        let names = Set(ConformanceCase.all.map(\.testDescription))
        #expect(names.count == ConformanceCase.all.count)
    }

    /// Sends the turns in pieces of `piece` bytes.
    private func check(_ item: ConformanceCase, piece: Int) {
        let bench = ServerBench(answerBytes: item.answerBytes)
        if !item.isFromStart { bench.greet(item.settings) }
        var frames: [RawFrame] = []
        var last: [RawFrame] = []
        for turn in item.turns {
            var rest = turn[...]
            while !rest.isEmpty {
                bench.send(Array(rest.prefix(piece)))
                rest = rest.dropFirst(piece)
            }
            last = bench.takeFrames()
            frames += last
        }
        let goAway = frames.first { $0.type == 7 }
        let resets = frames.filter { $0.type == 3 }
        switch item.expectation {
        case .connectionError(let code):
            #expect(goAway?.number(at: 4) == code.rawValue)
            #expect(bench.server.isFinished)
            return
        case .streamError(let stream, let code):
            #expect(resets.map(\.stream) == [stream])
            #expect(resets.first?.number(at: 0) == code.rawValue)
        case .answered(let streams):
            #expect(resets.isEmpty)
            checkAnswers(streams, frames)
        case .answeredLast(let streams):
            #expect(goAway == nil && resets.isEmpty && bench.server.isFinished)
            checkAnswers(streams, frames)
            return
        case .ignored: #expect(last.isEmpty)
        case .frame(let frame): #expect(frames.contains(frame))
        case .data(let stream, let lengths):
            let data = frames.filter { $0.type == 0 && $0.stream == stream }
            #expect(data.map(\.payload.count) == lengths)
        }
        #expect(goAway == nil)
        bench.send([.ping("go on???")])
        #expect(bench.takeFrames().contains(.ping("go on???", RawFrame.ack)))
    }

    private func checkAnswers(_ streams: [UInt32], _ frames: [RawFrame]) {
        for stream in streams {
            let own = frames.filter { $0.stream == stream && $0.type < 2 }
            #expect(own.first?.type == 1)
            #expect(own.last.map { $0.flags & RawFrame.endStream } == RawFrame.endStream)
        }
    }
}
