import Cluster
import Testing

@Suite("How a node goes")
struct ShutdownStepTests {
    @Test(
        "answers are given or broken off before the others stop waiting for it",
        arguments: [true, false])
    func order(isQuiet: Bool) {
        var steps = [ShutdownStep.finishingRequests]
        while let last = steps.last, last != .stopped { steps.append(last.next(isIdle: isQuiet)) }
        let cut: [ShutdownStep] = isQuiet ? [] : [.abortingResponses]
        let all: [ShutdownStep] =
            [.finishingRequests] + cut + [.leavingVoterSet, .announcingLeave, .stopped]
        #expect(steps == all)
    }
}
