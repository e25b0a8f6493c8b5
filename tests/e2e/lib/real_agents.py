"""The real agents against the toy model, offline. tools/npm-get installs them once; where that is
impossible the tests are skipped and say why."""
import os
import platform
import re
import subprocess

from lib import npm
from lib.check import SAFETY, Skip
from lib.server import BUILD, ROOT


def obstacle():
    off = os.environ.get("AGENT_API_REAL")
    if off == "0":
        return "turned off by AGENT_API_REAL=0"
    if not off and ("asan" in BUILD or "tsan" in BUILD):
        return "they run in the plain build; AGENT_API_REAL=1 runs them in this one"
    if platform.machine() != "x86_64":
        return "no recorded agents for this processor"
    return None if "HOME" in os.environ else "no HOME to keep the agents in"


class Real:
    """The model and where the agents are."""

    def __init__(self):
        why = obstacle()
        if why:
            raise Skip(why)
        self.modules = npm.modules("agents")
        self.model = subprocess.Popen(
            [npm.node(), os.path.join(ROOT, "tests", "fixtures", "toy_model_server.mjs"), "0"],
            stdout=subprocess.PIPE, text=True)
        found = re.match(r"listening (\d+)", self.model.stdout.readline())
        if not found:
            raise Skip("the toy model did not start")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.model.kill()
        self.model.wait(SAFETY)
        self.model.stdout.close()

    def definition(self, shop, agent, scenario, **more):
        """What Shop.define takes for the real agent in this scenario of the model."""
        home = shop.file(f"home-{agent}-{scenario}")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "config.toml"), "w") as f:
            f.write(f"""model = "toy-model"
model_provider = "toy"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.toy]
name = "toy"
base_url = "http://127.0.0.1:{self.port}/{scenario}/v1"
env_key = "TOY_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[shell_environment_policy]
inherit = "core"
""")
        env = {"HOME": home, "TOY_API_KEY": "sk-dummy-0000", "IS_SANDBOX": "1",
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}/{scenario}",
               "ANTHROPIC_API_KEY": "sk-ant-dummy-0000", "DISABLE_AUTOUPDATER": "1",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0"}
        claude = os.path.join(self.modules, "@anthropic-ai/claude-code-linux-x64/claude")
        codex = os.path.join(self.modules, "@openai/codex-linux-x64/vendor/"
                             "x86_64-unknown-linux-musl/bin/codex")
        acp = os.path.join(self.modules, "@agentclientprotocol/claude-agent-acp/dist/index.js")
        how = {"claude_code": {"program": claude, "home": home},
               "codex": {"program": codex, "home": home},
               "acp": {"program": npm.node(), "args": [acp], "can_resume": True}}[agent]
        if agent == "acp":
            env["CLAUDE_CONFIG_DIR"] = home
        return {"entry": agent, "env": env, **how, **more}
