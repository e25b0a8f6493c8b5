import './styles/tokens.css';
import './styles/base.css';
import {createRoot} from 'react-dom/client';
import {App} from './app';
import {Problem, askTabs, takeLink} from './lib/api';
import {applyTheme} from './lib/theme';

applyTheme();
let why: string | undefined;
try {
	if (!await takeLink())
		await askTabs();
} catch (e) {
	why = e instanceof Problem && e.status === 401 ? 'This link was used already, or is too old.' : 'The server does not answer.';
}
createRoot(document.getElementById('root')!).render(<App why={why} />);
