import Cluster
import Testing

@Suite("The order of a shutdown")
struct ShutdownStepTests {
    @Test(
        "Responses end before the other members stop waiting for the node",
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
