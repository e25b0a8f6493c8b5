// colours.ts - the highlighter with its usual languages: a chunk of its own, loaded with the first code.
import {common, createLowlight} from 'lowlight';

export const lowlight = createLowlight(common);
