package import Foundation
import Glibc

/// A headless Chromium with its own profile, driven through chromedriver (W3C WebDriver, Level 2).
///
/// The browser ends and its files are removed on release.
package final class Browser: Sendable {
    /// An error reported by the browser or chromedriver, or the absence of either.
    package struct DriverError: Error, CustomStringConvertible {
        package let description: String

        /// True if the page has replaced the element since it was found.
        package var isStaleElement: Bool { description.contains("stale element reference") }
    }

    private let driver: Program
    private let folder: URL
    private let port: Int
    /// The URL path of the WebDriver session.
    private let session: String

    /// Maximum time to wait for a page load or a script, in seconds.
    private static let seconds = 60.0

    /// Starts a browser with an empty page.
    ///
    /// - Throws: ``DriverError`` with the missing program or the driver's message.
    package init() throws {
        guard let path = try? Program.find("chromedriver") else {
            throw DriverError(
                description: "there is no chromedriver in PATH; deploy/test installs it")
        }
        folder = try Program.temporaryFolder()
        // chromedriver keeps caches in the user's home and leaves files in the temporary folder.
        var driver = try Self.start(path, in: folder)
        // The driver picks a port that is free in one address family but may be taken in the other.
        for _ in 0..<4 where Self.port(of: driver) == nil {
            driver = try Self.start(path, in: folder)
        }
        self.driver = driver
        do {
            guard let port = Self.port(of: driver) else {
                throw DriverError(description: "chromedriver does not start: \(driver.errors)")
            }
            self.port = port
            session = try Self.session(at: port, in: folder)
        } catch {
            Self.cleanUp(folder, after: driver)
            throw error
        }
    }

    deinit {
        _ = try? Self.send(port, "DELETE", session)
        Self.cleanUp(folder, after: driver)
    }

    /// Ends the driver and any browser it could not end, and removes their files.
    private static func cleanUp(_ folder: URL, after driver: Program) {
        driver.kill()
        for process in processes(of: folder) { _ = Glibc.kill(process, SIGKILL) }
        _ = Deadline.seconds(10).waitUntil {
            // A process that is still ending may still write.
            try? FileManager.default.removeItem(at: folder)
            return !FileManager.default.fileExists(atPath: folder.path)
        }
    }

    /// Returns the ids of the processes that run with the profile in `folder`.
    private static func processes(of folder: URL) -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { process in
            let line = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
            return line?.contains(folder.path) == true
        }
    }

    private static func session(at port: Int, in folder: URL) throws -> String {
        let made = try send(port, "POST", "/session", ["capabilities": capabilities(folder)])
        guard let id = (made as? [String: Any])?["sessionId"] as? String else {
            throw DriverError(description: "no session: \(made)")
        }
        return "/session/\(id)"
    }

    private static func start(_ path: String, in folder: URL) throws -> Program {
        try Program(path, ["--port=0"], environment: ["HOME": folder.path, "TMPDIR": folder.path])
    }

    /// Returns the port of a started driver, or `nil` if it does not start.
    private static func port(of driver: Program) -> Int? {
        var port: Int?
        _ = Deadline.seconds(30).waitUntil {
            let message = String(decoding: driver.output, as: UTF8.self)
            port = message.firstMatch(of: /on port ([0-9]+)\.\n/).flatMap { Int($0.output.1) }
            return port != nil || !driver.isRunning
        }
        return port
    }

    private static func capabilities(_ folder: URL) -> [String: Any] {
        // Chromium does not create its sandbox for root.
        let sandbox = geteuid() == 0 ? ["--no-sandbox"] : []
        let flags =
            [
                "--headless=new", "--disable-dev-shm-usage", "--disable-gpu",
                "--disable-breakpad", "--no-first-run", "--disable-background-networking",
                "--user-data-dir=\(folder.appending(path: "profile").path)",
            ] + sandbox
        return [
            "alwaysMatch": [
                "browserName": "chrome",
                "goog:chromeOptions": ["args": flags],
                "goog:loggingPrefs": ["browser": "ALL"],
                "timeouts": ["script": Int(seconds * 1_000), "pageLoad": Int(seconds * 1_000)],
            ]
        ]
    }

    /// Sends one WebDriver command and returns its value.
    @discardableResult
    package func send(
        _ path: String, _ parameters: [String: Any] = [:], method: String = "POST"
    ) throws -> Any {
        try Self.send(port, method, session + path, parameters)
    }

    private static func send(
        _ port: Int, _ method: String, _ path: String, _ parameters: [String: Any] = [:]
    ) throws -> Any {
        let connection = try HTTPConnection(port: port)
        let body =
            method == "POST" ? try JSONSerialization.data(withJSONObject: parameters) : Data()
        let fields = ["Content-Type: application/json", "Content-Length: \(body.count)"]
        let head = HTTPConnection.request(path, method: method, fields: fields)
        try connection.socket.send(head + Array(body))
        let response = connection.readResponse(method: method, seconds: seconds + 10)
        let read = try? JSONSerialization.jsonObject(
            with: Data(response.body ?? []), options: .fragmentsAllowed)
        guard let document = read as? [String: Any], let value = document["value"] else {
            throw DriverError(description: "\(method) \(path): \(response)")
        }
        guard response.status == 200 else {
            let message = (value as? [String: Any])?["message"] ?? value
            throw DriverError(description: "\(method) \(path): \(message)")
        }
        return value
    }
}

extension Browser {
    /// Opens a page and returns when it has loaded.
    package func open(_ url: String) throws {
        try send("/url", ["url": url])
    }

    /// Evaluates a JavaScript expression in the page; `arguments` are its arguments.
    ///
    /// - Returns: The value as JSON represents it. Elements are found with ``element(_:)`` instead.
    package func value(_ expression: String, _ arguments: [Any] = []) throws -> Any {
        try send("/execute/sync", ["script": "return (\(expression));", "args": arguments])
    }

    /// Waits until a JavaScript expression is true in the page, and returns false on timeout.
    ///
    /// The expression is evaluated in the page itself, twenty times a second.
    package func waitUntil(_ condition: String, seconds: Double = 20) throws -> Bool {
        let script = """
            const done = arguments[arguments.length - 1];
            const end = performance.now() + \(seconds * 1_000);
            const look = () => {
              let isThere = false;
              try { isThere = Boolean(\(condition)); } catch (error) { isThere = false; }
              if (isThere || performance.now() > end) done(isThere);
              else setTimeout(look, 50);
            };
            look();
            """
        return try send("/execute/async", ["script": script, "args": [Any]()]) as? Bool == true
    }

    /// Returns the text of the element that a CSS selector finds, as it is in the document.
    package func text(_ selector: String) throws -> String {
        try value("document.querySelector(arguments[0]).textContent", [selector]) as? String ?? ""
    }

    /// Returns the first element that a CSS selector finds.
    package func element(_ selector: String) throws -> PageElement {
        try PageElement(
            send("/element", ["using": "css selector", "value": selector]), of: self)
    }

    /// Returns all elements that a CSS selector finds.
    package func elements(_ selector: String) throws -> [PageElement] {
        let found = try send("/elements", ["using": "css selector", "value": selector])
        return try (found as? [Any] ?? []).map { try PageElement($0, of: self) }
    }

    /// Presses and releases a key; the focused element receives it.
    package func press(_ key: PageKey) throws {
        let steps = ["keyDown", "keyUp"].map { ["type": $0, "value": key.rawValue] }
        try send(
            "/actions", ["actions": [["type": "key", "id": "keyboard", "actions": steps]]])
    }

    /// Sets the size of the viewport in pixels and the preferred colour scheme.
    package func emulate(width: Int, height: Int, isDark: Bool = false) throws {
        try sendDevToolsCommand(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false])
        let tone = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try sendDevToolsCommand("Emulation.setEmulatedMedia", ["features": [tone]])
    }

    /// Sends a command of the Chrome DevTools Protocol.
    private func sendDevToolsCommand(_ command: String, _ parameters: [String: Any]) throws {
        try send("/goog/cdp/execute", ["cmd": command, "params": parameters])
    }

    /// Returns the console messages since the last call: script errors, policy violations and
    /// failed requests.
    package func consoleMessages() throws -> [String] {
        let entries = try send("/se/log", ["type": "browser"]) as? [[String: Any]] ?? []
        return entries.filter { ["SEVERE", "WARNING"].contains($0["level"] as? String ?? "") }
            .map { $0["message"] as? String ?? "\($0)" }
    }

    /// Returns a screenshot of the viewport as a PNG.
    package func screenshot() throws -> Data {
        let text = try send("/screenshot", method: "GET") as? String ?? ""
        guard let data = Data(base64Encoded: text) else {
            throw DriverError(description: "a picture that is no base64")
        }
        return data
    }
}

/// A key that types no character, by its code in WebDriver (§17.4.2).
package enum PageKey: String, Sendable {
    case tab = "\u{E004}"
    case enter = "\u{E007}"
    case escape = "\u{E00C}"
    case space = " "
    case slash = "/"
}

extension Browser {
    private static let shared = LockedBox<Browser?>(nil)

    /// Returns this process's browser with a new page in place of its former one.
    ///
    /// Starting a browser takes seconds, and pages of different nodes share nothing: each node has
    /// its own port and so its own origin. The browser ends with the process.
    ///
    /// - Throws: ``DriverError``.
    package static func withNewPage() throws -> Browser {
        if let browser = shared.value, (try? browser.replacePage()) != nil { return browser }
        let browser = try Browser()
        shared.value = browser
        ExitHandlers.atExit { shared.value = nil }
        return browser
    }

    /// Opens an empty page, closes the former one, and drops its console messages.
    private func replacePage() throws {
        let page = try send("/window/new", ["type": "tab"]) as? [String: Any]
        guard let handle = page?["handle"] as? String else {
            throw DriverError(description: "no page: \(page ?? [:])")
        }
        try send("/window", method: "DELETE")
        try send("/window", ["handle": handle])
        _ = try consoleMessages()
    }
}
