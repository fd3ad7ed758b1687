import Cluster
import Testing

@Suite("How a node goes")
struct DepartureTests {
    @Test(
        "answers are given or broken off before the others stop waiting for it",
        arguments: [true, false])
    func order(isQuiet: Bool) {
        var steps = [Departure.closing]
        while let last = steps.last, last != .gone { steps.append(last.next(isQuiet: isQuiet)) }
        let cut: [Departure] = isQuiet ? [] : [.breakingOff]
        let all: [Departure] = [.closing] + cut + [.leaving, .parting, .gone]
        #expect(steps == all)
    }
}
