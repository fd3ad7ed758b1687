import Glibc
import Ground

/// How nodes are watched.
package struct TopOrder: Sendable {
    /// How often they are asked, as the operator writes it.
    package var interval = "1s"
    /// One picture, and the end.
    package var isOnce = false

    package init() {}
}

extension Commands {
    /// Shows what nodes do, again and again: on a terminal in place of what is there, else once;
    /// for programs a line of JSON for each node and time.
    package func top(_ order: TopOrder) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let interval = try CommandOptions.duration(order.interval, "--interval")
            guard interval >= .milliseconds(100) else {
                throw CommandFault(.misused, "--interval: at least 100ms are allowed")
            }
            let watch = TopWatch(try options.clients(), every: interval)
            try watch.greet(isAlone: options.nodes.count < 2)
            if options.isJSON { return stream(watch, order) }
            guard !order.isOnce, console.isTerminal, let screen = Screen() else {
                watch.look(times: 2)
                let lines = watch.state.screen(
                    columns: console.columns ?? 140, rows: nil, now: SystemClock.now())
                console.print(
                    lines.map { $0.written(isColoured: false) }.joined(separator: "\n"))
                return .done
            }
            run(watch, on: screen)
            return .done
        }
    }

    /// A line for each node, each time; until nobody reads it.
    private func stream(_ watch: TopWatch, _ order: TopOrder) -> CommandEnding {
        while true {
            let isRead = watch.lines().allSatisfy { line in
                Console.write(Array((line + "\n").utf8), to: STDOUT_FILENO)
            }
            if order.isOnce || !isRead { return .done }
            watch.pause()
        }
    }

    private func run(_ watch: TopWatch, on screen: Screen) {
        let inputs = [screen.keyboard, screen.bell].compactMap(\.self)
        var isOn = true
        while isOn {
            let (columns, rows) = screen.size
            screen.show(
                watch.state.screen(columns: columns, rows: rows, now: SystemClock.now()),
                isColoured: console.isColoured)
            let readable = watch.goOn(orUntilReadable: inputs)
            if readable.contains(screen.bell) { isOn = obey(screen) }
            guard let keyboard = screen.keyboard, readable.contains(keyboard) else { continue }
            guard let keys = screen.keys() else { return }
            isOn = keys.allSatisfy { watch.state.pressed($0) } && isOn
        }
    }

    /// False if it is over.
    private func obey(_ screen: Screen) -> Bool {
        for wish in screen.wishes() {
            switch wish {
            case .resize: continue
            case .suspend: screen.suspend()
            // As the key q: that is how one leaves it.
            case .end(SIGINT): return false
            case .end(let number): screen.end(by: number)
            }
        }
        return true
    }
}
